"""`llmshed status` for people: the same lines plainly anywhere, and as tables with colour on a terminal."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from llmshed.rendering.figures import duration

from ._status_seen import LOOKED_AT

if TYPE_CHECKING:
    from rich.console import Group

COLUMNS = 100
"""What sentences are folded to where no terminal says how wide it is."""
_GAP = "  "


class _Line(NamedTuple):
    """A sentence; `alarm` says that something is to be done about it."""

    text: str
    alarm: bool = False


_NOTHING = _Line("")


class _Grid(NamedTuple):
    """A table with its columns' names; `alarms` are the rows in which something is wrong."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    alarms: frozenset[int]


def plain(seen: Mapping[str, Any], url: str) -> str:
    """Return what was seen as text without colour."""
    blocks = []
    for block in _blocks(seen, url):
        if isinstance(block, _Line):
            blocks.append("\n".join(textwrap.wrap(block.text, COLUMNS, subsequent_indent=_GAP)))
            continue
        table = (block.columns, *block.rows)
        widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
        rows = (_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
        blocks.extend(map(str.rstrip, rows))
    return "\n".join(blocks)


def coloured(seen: Mapping[str, Any], url: str) -> "Group":
    """Return what was seen for a terminal: what is wrong in red."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    shown: list[Text | Table] = []
    for block in _blocks(seen, url):
        if isinstance(block, _Line):
            shown.append(Text(block.text, style="bold red" if block.alarm else ""))
            continue
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for column in block.columns:
            table.add_column(column, overflow="fold")
        for number, row in enumerate(block.rows):
            table.add_row(*map(Text, row), style="red" if number in block.alarms else "")
        shown.append(table)
    return Group(*shown)


def _blocks(seen: Mapping[str, Any], url: str) -> Iterator[_Line | _Grid]:
    yield _headline(seen, url)
    arrivals = seen["arrivals"]
    repeated = arrivals["repeat"] + arrivals["early"]
    yield _Line(
        f"requests in the house: {seen['requests_in_house']:,}; first arrivals so far: {arrivals['first']:,},"
        f" repeats: {repeated:,}; attempts for each call lately: {seen['amplification']:.2f}"
    )
    if seen["replicas"]:
        yield _NOTHING
        yield _replicas(seen["replicas"])
    yield _NOTHING
    yield _queues(seen["pools"])
    yield _NOTHING
    for pool in seen["pools"]:
        if pool["count_mismatches"]:
            yield _Line(f"pool {pool['name']}: {pool['count_mismatches']:,} prompts were counted otherwise than by the"
                        " engine: its tokenizer or template is another", alarm=True)  # fmt: skip
        if pool["ladder"] is not None:
            yield _ladder(pool["name"], pool["ladder"])
    yield _refusals(seen)
    for replica, trouble in seen["troubles"].items():
        yield _Line(_shown(f"trouble with {replica}: {trouble}"), alarm=True)
    for violation in seen["violations"]:
        yield _Line(_shown(f"a ledger does not hold, which is a bug: {violation}"), alarm=True)


def _headline(seen: Mapping[str, Any], url: str) -> _Line:
    why_not = ", ".join(name.replace("_", " ") for name in seen["not_ready"])
    state = "ready" if seen["ready"] else f"NOT READY: does not hold: {why_not}"
    observes = " (nothing is refused or queued)" if seen["mode"] == "observe" else ""
    text = f"llmshed {seen['version']} at {url}: {state}; mode {seen['mode']}{observes}"
    return _Line(_shown(f"{text}; configuration {seen['config_version']}"), alarm=not seen["ready"])


def _replicas(replicas: list[Mapping[str, Any]]) -> _Grid:
    alarms = frozenset(place for place, one in enumerate(replicas) if not one["up"] or one["mismatch"])
    columns = ("replica", "pool", "state", "profile", "reserved tokens", "sequences", "lends", "signals", "unlike")
    return _Grid(columns, [_replica(one) for one in replicas], alarms)


def _replica(one: Mapping[str, Any]) -> tuple[str, ...]:
    signals = ", ".join(f"{name} {times:,}" for name, times in one["signals"].items())
    factor = one["budget_factor"]
    return tuple(
        map(
            _shown,
            (
                one["name"],
                one["pool"],
                "up" if one["up"] else "DOWN",
                one["profile"] or "-",
                f"{one['reserved_tokens']:,} of {one['safe_budget_tokens']:,}",
                f"{one['active_sequences']:,} of {one['hard_cap_sequences']:,}",
                "-" if factor is None else f"{factor:.0%}",
                signals or "-",
                ", ".join(one["mismatch"]) or "-",
            ),
        )
    )


def _queues(pools: list[Mapping[str, Any]]) -> _Grid:
    rows = [
        (
            _shown(pool["name"]),
            lane,
            f"{queue['requests']:,}",
            f"{queue['tokens']:,}",
            duration(queue["oldest_age_seconds"]) if queue["requests"] else "-",
        )
        for pool in pools
        for lane, queue in pool["lanes"].items()
    ]
    return _Grid(("pool", "lane", "waiting", "waiting tokens", "oldest"), rows, frozenset())


def _ladder(pool: str, ladder: Mapping[str, Any]) -> _Line:
    rungs = ladder["in_force"]
    in_force = f"rung {len(rungs)} ({', '.join(rungs)})" if rungs else "on the ground"
    text = f"pool {pool}: ladder {ladder['ladder']}: {in_force}; by rule {ladder['by_rule']}"
    hold = ladder["hold"]
    if hold is not None:
        text += f"; {hold['rung']} is held for {duration(hold['remaining_seconds'])} more: {hold['reason']}"
    return _Line(_shown(text), alarm=bool(rungs))


def _refusals(seen: Mapping[str, Any]) -> _Line:
    if not seen["decisions"]:
        return _Line("no request has been decided yet")
    among = (
        f"{seen['decisions']:,} decisions so far" if seen["decisions"] < LOOKED_AT else f"last {LOOKED_AT} decisions"
    )
    told = ", ".join(f"{reason} {times:,}" for reason, times in seen["refusals"].items()) or "none"
    return _Line(f"refused or failed among the {among}, since {seen['decisions_since'][:19]}Z: {told}")


def _shown(text: str) -> str:
    """Return a text in which nothing steers a terminal: names and errors may come from elsewhere."""
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)
