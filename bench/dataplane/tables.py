"""The tables of docs/performance.md, from the figures that a run kept."""

from collections.abc import Iterable, Sequence

from dataplane.figures import Figures
from dataplane.goals import Goal, goals
from dataplane.relay_cost import EVENTS_PER_SECOND
from dataplane.rig import NGINX

BEGIN, END = "<!-- dataplane: begin -->", "<!-- dataplane: end -->"
QUIET_RATIO = 0.95
_VERDICTS = {True: "met", False: "**not met**", None: "not measured"}


def section(figures: Figures) -> str:
    """Return what stands between the markers."""
    parts = [_busy(figures), _goals(goals(figures)), _peers(figures), _absent(figures), _failures(figures)]
    return "\n".join(part for part in parts if part)


def put_into(page: str, figures: Figures) -> str:
    """Return a page with the section anew.

    Raises:
        ValueError: the page has no markers.
    """
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return f"{before}{BEGIN}\n{section(figures)}{END}{after}"


def _busy(figures: Figures) -> str:
    """Return a warning where the machine had other work: the yardstick itself then relays less than it is sent."""
    relayed = figures.middle("stream", NGINX, "events_per_second")
    if relayed is None or relayed >= QUIET_RATIO * EVENTS_PER_SECOND:
        return ""
    return (
        f"**The machine had other work**: nginx relayed {relayed:,.0f} of {EVENTS_PER_SECOND:,} events a second."
        " What follows tells little.\n"
    )


def _goals(all_goals: Iterable[Goal]) -> str:
    head = ["what", "beside", "to hold", "seen", ""]
    body = [[goal.what, goal.beside, goal.to_hold, _seen(goal), _VERDICTS[goal.met]] for goal in all_goals]
    return _table(head, body)


def _seen(goal: Goal) -> str:
    if goal.seen is None:
        return "-"
    if goal.seen < 0.1 and goal.unit == "x":
        return f"1/{1 / goal.seen:.0f}"
    return f"{goal.seen:.{0 if goal.seen >= 100 else 2}f} {goal.unit}"


def _peers(figures: Figures) -> str:
    names = dict.fromkeys((*figures.proxies("request"), *figures.proxies("stream")))
    body = [
        [
            name,
            _value(figures.middle("request", name, "cpu_us_per_request")),
            _value(figures.ratio("request", name, NGINX, "cpu_us_per_request")),
            _value(figures.middle("stream", name, "cpu_us_per_event")),
            _value(figures.ratio("stream", name, NGINX, "cpu_us_per_event")),
            _value(figures.middle("stream", name, "event_p50_us")),
            _value(figures.middle("stream", name, "events_per_second")),
        ]
        for name in names
    ]
    head = ["proxy", "a request, us", "x nginx", "an event, us", "x nginx", "its lateness p50, us", "events/s"]
    return _table(head, body) if body else ""


def _absent(figures: Figures) -> str:
    return "".join(f"{name} was not measured: {why}.\n\n" for name, why in figures.absent.items())


def _failures(figures: Figures) -> str:
    lost: dict[str, float] = {}
    for one in figures.all:
        if one.name == "failures" and one.value:
            lost[one.proxy] = lost.get(one.proxy, 0) + one.value
    told = ", ".join(f"{name} {count:.0f}" for name, count in lost.items())
    return f"Answers that failed, in all rounds: {told}.\n\n" if told else ""


def _value(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |\n" for cells in (head, *body)]
    return "".join([lines[0], f"|{'|'.join('---' for _ in head)}|\n", *lines[1:]])
