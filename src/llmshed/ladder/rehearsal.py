"""What a rung would have done to requests that were served: the dry run of a hold, over lines of the decision log.

It counts what the lines tell and says what they do not. Who stops or sheds goes before who changes answers, as it does
at the door: a request that is not admitted is neither shortened nor moved.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from llmshed.admission.request import PriorityClass
from llmshed.ladder.model import Ladder, Rung, RungAction

_CHATS = frozenset({"/v1/chat/completions"})
_UNLOGGED_PARTS = "what a request declares as enrichment or optional is not logged, so nothing can be counted"
_THINKING = "how many tokens of thinking that spares is not logged"
_OTHER_TOKENIZER = "the other pool counts with its own tokenizer; some may not fit its maximums and be refused"
_LEFT_OUT = {
    RungAction.STOP_BULK: "those that a pool for bulk alone would have taken are counted too",
    RungAction.PREEMPT_BULK: "there are no asynchronous jobs, so it applies to nothing",
    RungAction.CAP_OUTPUT: "reserved tokens; how many the engine would have generated less is not known",
    RungAction.DISABLE_THINKING: _OTHER_TOKENIZER,
    RungAction.SMALLER_MODEL: _OTHER_TOKENIZER,
}


@dataclass(frozen=True, slots=True)
class RungEffect:
    """What one rung would have done.

    Args:
        rung: its name.
        action: what it does.
        requests: how many it would have touched; None where the log does not tell.
        tokens: reserved tokens that the pool would not have carried; None likewise.
        unknown: what the figures leave out, as a sentence; empty for nothing.
    """

    rung: str
    action: RungAction
    requests: int | None
    tokens: int | None
    unknown: str


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What the rungs up to one would have done.

    Args:
        served: requests that the pool served, by the records.
        served_tokens: reserved tokens of these.
        effects: rung by rung, in the order of the ladder.
    """

    served: int
    served_tokens: int
    effects: tuple[RungEffect, ...]


def rehearse(records: Iterable[Mapping[str, Any]], pool: str, ladder: Ladder, rung_name: str) -> Rehearsal:
    """Count what the rungs up to one would have done to a pool's served requests.

    Args:
        records: lines of the decision log, as docs/decision-log.md describes them.
        pool: the pool.
        ladder: its ladder.
        rung_name: the last rung that is to be in force.

    Raises:
        ValueError: the ladder has no such rung.
    """
    number = ladder.rung_number(rung_name)
    if number is None:
        raise ValueError(f"ladder {ladder.label} has no rung `{rung_name}`")
    rungs = ladder.rungs[:number]
    tallies = {rung.name: [0, 0] for rung in rungs}
    in_turn = sorted(rungs, key=lambda rung: rung.action.changes_answers)  # stable: otherwise as they are climbed
    served = served_tokens = 0
    for record in records:
        if record.get("pool") != pool or record.get("decision") != "admit":
            continue
        tokens = (record.get("reservation") or {}).get("total_tokens") or 0
        served += 1
        served_tokens += tokens
        _walk(record, tokens, in_turn, tallies)
    return Rehearsal(served, served_tokens, tuple(_effect(rung, tallies[rung.name]) for rung in rungs))


def _walk(record: Mapping[str, Any], tokens: int, rungs: list[Rung], tallies: dict[str, list[int]]) -> None:
    """Take one served request through the rungs, until one keeps it from the pool."""
    ceiling = record.get("output_ceiling_tokens") or 0
    for rung in rungs:
        if not _touches(rung, record):
            continue
        spared = 0
        leaves = not rung.action.changes_answers or rung.pool is not None
        if leaves:
            spared = tokens
        elif rung.max_output_tokens is not None:
            if ceiling <= rung.max_output_tokens:
                continue
            spared = (ceiling - rung.max_output_tokens) * (record.get("sequences") or 1)
            ceiling = rung.max_output_tokens
            tokens -= spared
        tallies[rung.name][0] += 1
        tallies[rung.name][1] += spared
        if leaves:
            return


def _touches(rung: Rung, record: Mapping[str, Any]) -> bool:
    """Say whether a request is in a rung's scope, as far as the log tells; False for what it cannot tell."""
    if not rung.scope.covers(
        PriorityClass(record.get("priority_class") or PriorityClass.NORMAL), str(record["tenant"])
    ):
        return False
    match rung.action:
        case RungAction.STOP_BULK:
            return record.get("lane") == "bulk"
        case RungAction.SHED_INTERACTIVE:
            return record.get("lane") == "interactive"
        case RungAction.DISABLE_THINKING:
            return record.get("route") in _CHATS
        case RungAction.CAP_OUTPUT | RungAction.SMALLER_MODEL:
            return True
        case RungAction.DROP_ENRICHMENT | RungAction.SHRINK_CONTEXT | RungAction.PREEMPT_BULK:
            return False


def _effect(rung: Rung, tally: list[int]) -> RungEffect:
    requests, tokens = tally
    match rung.action:
        case RungAction.DROP_ENRICHMENT | RungAction.SHRINK_CONTEXT:
            return RungEffect(rung.name, rung.action, None, None, _UNLOGGED_PARTS)
        case RungAction.DISABLE_THINKING if rung.pool is None:
            return RungEffect(rung.name, rung.action, requests, None, _THINKING)
        case _:
            return RungEffect(rung.name, rung.action, requests, tokens, _LEFT_OUT.get(rung.action, ""))
