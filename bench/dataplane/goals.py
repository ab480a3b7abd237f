"""What the gateway may cost at most beside other things, and what it does; every figure is a median of rounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from dataplane.counting_cost import ENCODE
from dataplane.figures import Figures
from dataplane.rig import LLMSHED, NGINX
from dataplane.starting import PYTHON

SMG, LITELLM = "smg", "litellm"
MOST_ENCODES, MOST_EXTRA_US = 1.3, 200.0
LEAST_P99_US = 3000.0
"""A lateness that is good enough whatever it is without long prompts."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal.

    Args:
        what: what is measured.
        beside: what it is held against.
        to_hold: the bound, in words.
        seen: the figure, in the same unit; None: it was not measured.
        bound: the bound.
        unit: the unit of both, as it is printed.
    """

    what: str
    beside: str
    to_hold: str
    seen: float | None
    bound: float
    unit: str = "x"

    @property
    def met(self) -> bool | None:
        """Say whether the goal is met; None when it was not measured."""
        return None if self.seen is None else self.seen <= self.bound


def goals(figures: Figures) -> Iterator[Goal]:
    """Yield every goal with what was seen."""
    yield _beside("CPU of a relayed event, 15,000 a second", "stream", NGINX, "cpu_us_per_event", 2.0, figures)
    admission = "CPU of a whole request, exact admission of 400 tokens, segment cache warm"
    yield _beside(admission, "request", SMG, "cpu_us_per_request", 1.0, figures)
    yield _beside("the same", "request", LITELLM, "cpu_us_per_request", 1 / 50, figures)
    yield _cold(figures)
    yield _beside("count of a chat of 20 turns, one of them new", "turns", ENCODE, "cpu_us", 1 / 20, figures)
    yield _isolation(figures)
    for measure, when, bound in (
        ("refused_unread", "before the body is read", 3.0),
        ("refused_counted", "after the exact count", 6.0),
    ):
        theirs = figures.middle("request", NGINX, "cpu_us_per_request")
        ours = figures.middle(measure, LLMSHED, "cpu_us_per_request")
        yield Goal(
            f"CPU of a refusal {when}",
            "nginx, a proxied request",
            _at_most(bound),
            ours / theirs if ours and theirs else None,
            bound,
        )
    yield Goal(
        "lateness of admitted streams' events beside the refusals of twice the load, p50",
        "the same without",
        _at_most(1.5),
        _storm(figures),
        1.5,
    )
    yield _beside("memory of each of 1,000 open streams", "memory", NGINX, "bytes_per_stream", 1.0, figures)
    yield Goal(
        "stall of the loop by a scrape of 900 series", "", "at most 5 ms", _stall_ms(figures), bound=5.0, unit="ms"
    )
    yield _beside("`llmshed --help` (wall)", "start", PYTHON, "wall_ms", 8.0, figures)


def _beside(what: str, measure: str, beside: str, name: str, bound: float, figures: Figures) -> Goal:
    return Goal(what, beside, _at_most(bound), figures.ratio(measure, LLMSHED, beside, name), bound)


def _at_most(bound: float) -> str:
    return f"at most 1/{1 / bound:.0f}" if bound < 0.1 else f"at most {bound:g} x"


def _cold(figures: Figures) -> Goal:
    ours = figures.middle("cold", LLMSHED, "cpu_us_per_request")
    alone = figures.middle("cold", ENCODE, "cpu_us_per_request")
    bound = MOST_ENCODES * (alone or 0.0) + MOST_EXTRA_US
    return Goal(
        "CPU of a whole request of a text that is new, plain `tokenizers`",
        f"`{ENCODE}` of it",
        f"at most {MOST_ENCODES} x and {MOST_EXTRA_US:.0f} us" + (f": {bound:,.0f} us" if alone else ""),
        ours if alone else None,
        bound,
        "us",
    )


def _isolation(figures: Figures) -> Goal:
    alone = figures.middle("isolation", LLMSHED, "alone_p99_us")
    beside = figures.middle("isolation", LLMSHED, "beside_p99_us")
    bound_ms = max(4 * (alone or 0.0), LEAST_P99_US) / 1000
    return Goal(
        "lateness of 100 streams' events beside 30 new prompts of 14,000 tokens a second, p99",
        "the same without",
        "at most 4 x, or 3 ms if that is more" + (f": {bound_ms:.1f} ms" if alone else ""),
        beside / 1000 if alone and beside else None,
        bound_ms,
        "ms",
    )


def _stall_ms(figures: Figures) -> float | None:
    return figures.middle("scrape", LLMSHED, "stall_ms")


def _storm(figures: Figures) -> float | None:
    calm = figures.of("storm", LLMSHED, "calm_p50_us")
    stormy = figures.of("storm", LLMSHED, "twice_p50_us")
    ratios = [stormy[number] / calm[number] for number in calm.keys() & stormy.keys()]
    return median(ratios) if ratios else None
