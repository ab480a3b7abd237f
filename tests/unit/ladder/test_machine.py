"""The machine of one pool: steps, holds, reloads, damping and the windows that nobody ended."""

from pathlib import Path

from llmshed.ladder.machine import PoolLadder
from llmshed.ladder.parsing import parse_ladder
from llmshed.ladder.reading import PoolReading
from llmshed.ladder.standing import Cause

SOURCE = parse_ladder(
    (Path(__file__).resolve().parents[3] / "profiles/ladders/source.toml").read_text("utf-8"), "source.toml"
)
NOBODY = PoolReading((), 0, None, None, 0)


def test_three_windows_above_then_two_more() -> None:
    pool = PoolLadder("chat", SOURCE, 8.0, 0.0)
    seen = []
    for minute in range(1, 6):
        for _ in range(20):
            pool.sample(9.0)
        seen += [(minute, step.after, step.cause) for step in pool.advance(60.0 * minute, lambda: NOBODY)]
        assert pool.check() == ()

    assert seen == [(3, 1, Cause.CLIMBED), (5, 2, Cause.CLIMBED)]
