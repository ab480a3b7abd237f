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

WORTHS = (0.0, 0.4, 0.5, 0.7)
"""Least worths that are tried by default; the first serves everybody."""


@dataclass(frozen=True, slots=True, order=True)
class OracleLevel:
    """What the oracle keeps in flight, and in reserve.

    Args:
        tokens: most true tokens (input, and output within the ceiling) in flight on a replica, at least 1. One request
            alone may exceed it.
        reserve_ratio: share of a request's slack that must be left when its prompt is begun while others wait; 0 to
            below 1. Slack is the TTFT objective less the TTFT on an idle replica.
        worth_ratio: least worth of a request while others wait, 0 or more. Worth is its true tokens for each second by
            which it makes the engine's work longer, as a multiple of the tokens of short prompts that the engine
            computes in a second. What is cached takes no time.
    """

    tokens: int
    reserve_ratio: float = RESERVES[0]
    worth_ratio: float = WORTHS[0]

    def __post_init__(self) -> None:
        """Refuse a level that lets nothing through."""
        if self.tokens < 1:
            raise ValueError(f"a level of {self.tokens} tokens is none; accepted are 1 and more")
        if not 0 <= self.reserve_ratio < 1:
            raise ValueError(f"a reserve of {self.reserve_ratio:g} leaves no slack; accepted are 0 to below 1")
        if not self.worth_ratio >= 0:
            raise ValueError(f"a worth of {self.worth_ratio:g} means nothing; accepted are 0 and more")


def highest_level(setting: Setting) -> OracleLevel:
    """Return the highest level that means anything: what the KV cache of a replica holds."""
    return OracleLevel(EngineFacts(setting.parameters).kv_tokens)


def oracle_levels(setting: Setting, steps: int = LEVEL_STEPS) -> tuple[OracleLevel, ...]:
    """Return levels to try, the lowest first: each with every reserve, and with every worth at the first reserve.

    See `LEVEL_STEPS`, `RESERVES` and `WORTHS`. Whoever has to save runs finds the tokens at the first reserve and
    worth, then the others at those tokens.
    """
    most = highest_level(setting).tokens
    tokens = {max(int(most / 2 ** (step / 2)), 1) for step in range(steps)}
    sorts = {(reserve, WORTHS[0]) for reserve in RESERVES} | {(RESERVES[0], worth) for worth in WORTHS}
    return tuple(sorted(OracleLevel(level, *sort) for level in tokens for sort in sorts))


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
