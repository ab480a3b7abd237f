"""The levels that the oracle is tried at, and the choice of the best."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from llmshed.whatif.gates.engine_facts import EngineFacts
from llmshed.whatif.setting import Setting

Outcome = TypeVar("Outcome")

LEVEL_STEPS = 8
"""Token levels that are tried by default: from all of the KV down to an eleventh, each a factor of sqrt(2)."""
RESERVES = (0.4, 0.0)
"""Reserves that are tried by default; the first is the one of an oracle that is not tuned."""


@dataclass(frozen=True, slots=True, order=True)
class OracleLevel:
    """What the oracle keeps in flight, and in reserve.

    Args:
        tokens: most true tokens (input, and output within the ceiling) in flight on a replica, at least 1. One request
            alone may exceed it.
        reserve_ratio: share of a request's slack that must be left when its prompt is begun while others wait; 0 to
            below 1. Slack is the TTFT objective less the TTFT on an idle replica.
    """

    tokens: int
    reserve_ratio: float = RESERVES[0]

    def __post_init__(self) -> None:
        """Refuse a level that lets nothing through."""
        if self.tokens < 1:
            raise ValueError(f"a level of {self.tokens} tokens is none; accepted are 1 and more")
        if not 0 <= self.reserve_ratio < 1:
            raise ValueError(f"a reserve of {self.reserve_ratio:g} leaves no slack; accepted are 0 to below 1")


def highest_level(setting: Setting) -> OracleLevel:
    """Return the highest level that means anything: what the KV cache of a replica holds."""
    return OracleLevel(EngineFacts(setting.parameters).kv_tokens)


def oracle_levels(setting: Setting, steps: int = LEVEL_STEPS) -> tuple[OracleLevel, ...]:
    """Return levels to try, the lowest first, each with every reserve; see `LEVEL_STEPS` and `RESERVES`."""
    most = highest_level(setting).tokens
    tokens = {max(int(most / 2 ** (step / 2)), 1) for step in range(steps)}
    return tuple(sorted(OracleLevel(level, reserve) for level in tokens for reserve in RESERVES))


def best_oracle(
    levels: Iterable[OracleLevel], run: Callable[[OracleLevel], Outcome], goodput: Callable[[Outcome], float]
) -> tuple[OracleLevel, Outcome]:
    """Return the level with the greatest goodput and what its run gave; of equals the lowest.

    Args:
        levels: each is tried.
        run: runs the oracle at a level, on a fresh setting.
        goodput: reads the figure that is to be greatest, as a rule tokens of good requests per second.

    Raises:
        ValueError: there are no levels.
    """
    best: tuple[OracleLevel, Outcome] | None = None
    for level in sorted(set(levels)):
        outcome = run(level)
        if best is None or goodput(outcome) > goodput(best[1]):
            best = (level, outcome)
    if best is None:
        raise ValueError("no level to try")
    return best
