"""Whether what is known of a ladder's degraded answers still holds: a fallback that nobody tried lately is a hope."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from llmshed.ladder.evaluation import is_beyond
from llmshed.ladder.model import Ladder, Rung
from llmshed.ladder.paths import changing, path_of, target_of, terms_of
from llmshed.ladder.records import DrillRecord, PathRecord
from llmshed.profile.comparison import Fact, Facts

ANSWERING_FACTS = frozenset({
    "model_id", "model_revision", "engine", "engine_version", "dtype", "quantization", "tokenizer_sha256",
    "template_sha256",
})  # fmt: skip
"""Fields of a fingerprint by which answers may differ; limits and hardware change when they come, not what they say."""


class Why(StrEnum):
    """What is wrong with a rung's evaluation; the value is a metric's label."""

    MISSING = "missing"
    """The path was never drilled, or with too few answers to tell."""
    UNREADABLE = "unreadable"
    """The file of evaluations cannot be read."""
    PRIMARY_CHANGED = "primary_changed"
    """The pool's model is no longer the one that it was compared with."""
    TARGET_CHANGED = "target_changed"
    """The model that answers on the path is no longer the one that was evaluated."""
    RUNG_CHANGED = "rung_changed"
    """The path does other things to a request than it did then."""
    BEYOND_GAP = "beyond_gap"
    """The path loses more than was agreed on."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A rung whose evaluation does not hold.

    Args:
        rung: its name.
        why: what is wrong.
        detail: a sentence for people.
    """

    rung: str
    why: Why
    detail: str


def stale_rungs(
    ladder: Ladder, pool: str, drills: Sequence[DrillRecord], facts_of: Callable[[str], Facts]
) -> tuple[Stale, ...]:
    """Return what is wrong with the evaluations of a pool's ladder, in the order of the rungs.

    Args:
        ladder: the ladder in force.
        pool: the pool.
        drills: what was found, newest first; those of other pools are passed over.
        facts_of: what a pool's replicas tell of themselves now; nothing of one that is not there.
    """
    own = [drill for drill in drills if drill.pool == pool]
    return tuple(stale for rung in changing(ladder) for stale in _stale(ladder, pool, rung, own, facts_of))


def common_facts(facts: Sequence[Facts]) -> dict[str, Fact]:
    """Return what a pool's replicas tell by which answers may differ; where they differ, all that is told."""
    names = sorted({name for one in facts for name in one} & ANSWERING_FACTS)
    told = {name: sorted({str(one[name]) for one in facts if name in one}) for name in names}
    return {name: " | ".join(values) for name, values in told.items()}


def _stale(
    ladder: Ladder, pool: str, rung: Rung, drills: Sequence[DrillRecord], facts_of: Callable[[str], Facts]
) -> list[Stale]:
    known = ((drill, drill.path(rung.name)) for drill in drills)
    found = next(((drill, record) for drill, record in known if record is not None and record.gap is not None), None)
    if found is None:
        return [Stale(rung.name, Why.MISSING, f"rung `{rung.name}` of pool {pool} was never drilled to a result")]
    drill, record = found
    path = path_of(ladder, rung)
    wrong = []
    if terms_of(path) != record.terms or target_of(path) not in {None, record.pool}:
        does, did = ", ".join(terms_of(path)), ", ".join(record.terms)
        wrong.append(Stale(rung.name, Why.RUNG_CHANGED, f"it does {does} and was drilled with {did}"))
    if change := _change(drill.primary, facts_of(pool)):
        wrong.append(Stale(rung.name, Why.PRIMARY_CHANGED, f"pool {pool}: {change}"))
    target = target_of(path)
    if target is not None and (change := _change(record, facts_of(target))):
        wrong.append(Stale(rung.name, Why.TARGET_CHANGED, f"pool {target}: {change}"))
    largest = rung.largest_quality_gap
    if largest is not None and record.gap is not None and is_beyond(record.gap.value, largest):
        detail = f"it loses {record.gap.value:.1%} of the primary's result, and {largest:.1%} is agreed on"
        wrong.append(Stale(rung.name, Why.BEYOND_GAP, detail))
    return wrong


def _change(evaluated: PathRecord, now: Facts) -> str | None:
    """Return the first thing that is known to be another one now; what is unknown on either side is no change."""
    for name, then in evaluated.facts.items():
        seen = now.get(name)
        if name in ANSWERING_FACTS and seen is not None and str(seen) != str(then):
            return f"{name} is {seen}, and was {then}"
    return None
