"""Ladders as they are shipped, pools at rest, and windows in one call, for tests of the ladder."""

from collections.abc import Iterable
from pathlib import Path

from llmshed.ladder.machine import PoolLadder
from llmshed.ladder.model import Ladder
from llmshed.ladder.parsing import parse_ladder
from llmshed.ladder.reading import PoolReading
from llmshed.ladder.standing import Step

_SHIPPED = Path(__file__).resolve().parents[2] / "profiles" / "ladders"


def shipped(name: str) -> Ladder:
    """Read a ladder that is shipped."""
    return parse_ladder((_SHIPPED / f"{name}.toml").read_text("utf-8"), f"{name}.toml")


def small(rungs: str, windows: str = "") -> Ladder:
    """Make a ladder of rungs in TOML, each a line of settings beside name, owner and date: `action = "stop_bulk"`."""
    lines = ['schema = "llmshed.ladder/1"', 'name = "small"', 'version = "1"', "[windows]", windows]
    for number, settings in enumerate(rungs.strip().splitlines(), 1):
        head = [] if settings.strip().startswith("name") else [f'name = "r{number}"']
        lines += ["[[rungs]]", *head, 'owner = "a"', "agreed_on = 2026-12-01", *settings.split("; ")]
    return parse_ladder("\n".join(lines), "small.toml")


def reading(
    *ages_seconds: float,
    prefill_tokens: int = 0,
    kv_used: float | None = None,
    preemptions: float | None = None,
    lost: int = 0,
) -> PoolReading:
    """Look at a pool in which interactive requests wait with these ages, and nothing else is to be seen."""
    return PoolReading(ages_seconds, prefill_tokens, kv_used, preemptions, lost)


def window(
    pool: PoolLadder, ends_at: float, waits: Iterable[float] = (), seen: PoolReading | None = None
) -> list[Step]:
    """Let a window's arrivals come, end it, and return the steps that came of it."""
    for seconds in waits:
        pool.sample(seconds)
    steps = pool.advance(ends_at, lambda: seen or reading())
    assert pool.check() == ()
    return steps
