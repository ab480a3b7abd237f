"""The causes, and by what each is told: a table."""

from enum import StrEnum
from typing import NamedTuple

from llmshed.diagnosis.checks import (
    Check,
    Seen,
    at_least,
    below,
    both,
    departed_first,
    did_not_grow,
    either,
    fell,
    grew,
    happened,
    moved,
)
from llmshed.diagnosis.facts import Facts


class Cause(StrEnum):
    """What an overload comes from."""

    REPLICA_LOSS = "replica_loss"
    DRIFTED_PROFILE = "drifted_profile"
    TOKENIZER = "tokenizer_bottleneck"
    UPSTREAM = "upstream_bottleneck"
    STALL = "scheduler_stall"
    KV_EXHAUSTION = "kv_exhaustion"
    RETRY_ECHO = "retry_echo"
    MISSET_BUDGET = "misset_budget"
    MISSET_LANE = "misset_lane"
    LONG_PREFILLS = "long_prefills"
    DECODE_SATURATION = "decode_saturation"


class Rule(NamedTuple):
    """How one cause is told.

    Args:
        cause: the cause.
        condition: without which it is never named.
        further: what speaks for it besides.
        direct: whether the condition shows the cause itself, rather than what it leads to; a direct one goes before.
    """

    cause: Cause
    condition: Check
    further: tuple[Check, ...]
    direct: bool


_BUDGET_BINDS = either(at_least("lent", 0.85), at_least("seated", 0.85))
_DEMAND_STOOD = both(did_not_grow("interactive_arrivals", 1.25), did_not_grow("interactive_input", 1.25))
_REFUSED_FOR_BUDGET = either(at_least("refused_for_tokens", 0.4), at_least("refused_for_seats", 0.4))
_ENGINE_HAS_ROOM = either(below("kv_used", 0.6), below("engine_waiting", 1.0))

RULES = (
    Rule(
        Cause.REPLICA_LOSS,
        fell("replicas_up", 0.01),
        (departed_first("replicas_up", "missed"), _BUDGET_BINDS),
        direct=True,
    ),
    Rule(
        Cause.DRIFTED_PROFILE,
        either(happened("miscounted", 1.0), happened("profile_mismatch", 1.0)),
        (_DEMAND_STOOD,),
        direct=True,
    ),
    Rule(
        Cause.TOKENIZER,
        either(at_least("counting_p95", 0.25), at_least("refused_for_counting", 0.2)),
        (below("lent", 0.7), grew("counting_p95", 3.0)),
        direct=True,
    ),
    Rule(
        Cause.UPSTREAM,
        both(at_least("upstream_errors", 0.05), moved("upstream_errors", 0.05)),
        (below("lent", 0.85), departed_first("upstream_errors", "oldest_age")),
        direct=True,
    ),
    Rule(
        Cause.STALL,
        happened("stalls", 1.0),
        (fell("budget_factor", 0.05), departed_first("stalls", "missed")),
        direct=True,
    ),
    Rule(
        Cause.KV_EXHAUSTION,
        either(at_least("preemptions", 0.02), happened("kv_signals", 1.0)),
        (at_least("kv_used", 0.9), grew("tpot_p95", 1.3)),
        direct=True,
    ),
    Rule(
        Cause.RETRY_ECHO,
        both(at_least("amplification", 2.0), _DEMAND_STOOD),
        (departed_first("amplification", "missed"),),
        direct=True,
    ),
    Rule(
        Cause.MISSET_BUDGET,
        both(_REFUSED_FOR_BUDGET, both(_DEMAND_STOOD, did_not_grow("tpot_p95", 1.2))),
        (_ENGINE_HAS_ROOM, _BUDGET_BINDS),
        direct=False,
    ),
    Rule(
        Cause.MISSET_LANE,
        both(moved("interactive_share", 0.15), both(did_not_grow("interactive_ceiling_p95", 1.25), _DEMAND_STOOD)),
        (),
        direct=False,
    ),
    Rule(
        Cause.LONG_PREFILLS,
        either(
            at_least("refused_for_prefill", 0.4),
            both(grew("interactive_input_p95", 1.5), grew("ttft_p95", 1.3)),
            both(grew("bulk_input", 1.5), grew("ttft_p95", 1.3)),
        ),
        (
            grew("ttft_p95", 1.5),
            either(grew("interactive_input_p95", 1.5), grew("bulk_input", 1.5), grew("interactive_input", 1.5)),
        ),
        direct=False,
    ),
    Rule(
        Cause.DECODE_SATURATION,
        both(_REFUSED_FOR_BUDGET, _BUDGET_BINDS),
        (
            either(
                grew("interactive_arrivals", 1.25), grew("interactive_ceiling_p95", 1.25), grew("bulk_arrivals", 1.25)
            ),
            below("refused_for_prefill", 0.3),
            grew("tpot_p95", 1.1),
            did_not_grow("interactive_input_p95", 1.5),
        ),
        direct=False,
    ),
)
"""Direct causes first; the order decides between equal weights."""
INDIRECT = 0.8
"""What the weight of a cause that is only inferred counts, so that a direct one goes before."""


class Suspicion(NamedTuple):
    """One cause, weighed.

    Args:
        cause: the cause.
        weight: 0 to 1.
        held: what speaks for it.
        against: what was looked at and does not.
        unknown: how many of its checks could not be looked at.
    """

    cause: Cause
    weight: float
    held: tuple[str, ...]
    against: tuple[str, ...]
    unknown: int


def suspicions(facts: Facts) -> tuple[Suspicion, ...]:
    """Return the causes whose condition holds, heaviest first."""
    found = [one for rule in RULES if (one := _weigh(rule, facts)) is not None]
    return tuple(sorted(found, key=lambda one: -one.weight))


def not_looked_at(facts: Facts) -> tuple[Cause, ...]:
    """Return the causes whose condition could not be looked at, for want of data."""
    return tuple(rule.cause for rule in RULES if rule.condition(facts) is None)


def _weigh(rule: Rule, facts: Facts) -> Suspicion | None:
    condition = rule.condition(facts)
    if condition is None or not condition.holds:
        return None
    looked: list[Seen] = [seen for check in rule.further if (seen := check(facts)) is not None]
    held = [seen for seen in looked if seen.holds]
    weight = (1 + len(held)) / (1 + len(looked)) * (1.0 if rule.direct else INDIRECT)
    return Suspicion(
        rule.cause,
        weight,
        (condition.sentence, *(seen.sentence for seen in held)),
        tuple(seen.sentence for seen in looked if not seen.holds),
        len(rule.further) - len(looked),
    )
