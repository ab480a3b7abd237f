"""What is wrong or doubtful with a ladder that its schema takes: its age, what it leaves open, what it does in vain."""

import datetime as dt
from collections.abc import Iterator, Mapping

from llmshed.ladder.model import Ladder, Rung, RungAction

MOST_DAYS = 365
"""Age beyond which an agreement is to be made again: models, teams and traffic of a year ago are others."""


def problems(ladder: Ladder, today: dt.date) -> Iterator[str]:
    """Yield what keeps a ladder from being relied on, one sentence each, the field first."""
    for index, rung in enumerate(ladder.rungs):
        if rung.agreed_on > today:
            yield f"rungs[{index}].agreed_on: {rung.agreed_on} is in the future"
        if rung.action.changes_answers and rung.largest_quality_gap is None:
            yield (
                f"rungs[{index}].largest_quality_gap: is missing; `{rung.action}` changes answers, and nobody agreed on"
                " how much worse they may be"
            )


def warnings(ladder: Ladder, today: dt.date) -> Iterator[str]:
    """Yield what a ladder leaves open or does in vain, one sentence each, the field first."""
    if ladder.evaluations is None and any(rung.action.changes_answers for rung in ladder.rungs):
        yield "evaluations: is missing, so nobody notices when the degraded answers get worse"
    for index, rung in enumerate(ladder.rungs):
        days = (today - rung.agreed_on).days
        if days > MOST_DAYS:
            yield f"rungs[{index}].agreed_on: agreed {days} days ago; to be agreed again every {MOST_DAYS}"
        if rung.action is RungAction.PREEMPT_BULK:
            yield f"rungs[{index}].action: `{rung.action}` applies to nothing until there are asynchronous jobs"
        yield from _in_vain(index, rung, ladder.rungs[:index])
        yield from _out_of_order(index, rung, ladder.rungs[:index])


def circles(ladders: Mapping[str, Ladder]) -> tuple[tuple[str, ...], ...]:
    """Return the circles in which rungs would send a request from pool to pool, by the ladder of each pool.

    Returns:
        For each circle its pools, from the first by name on; a pool that sends to itself is one of length 1.
    """
    targets = {pool: sorted({rung.pool for rung in ladder.rungs if rung.pool}) for pool, ladder in ladders.items()}
    found = {_from_least(way) for pool in targets if (way := _way_back(pool, targets))}
    return tuple(sorted(found))


def _in_vain(index: int, rung: Rung, earlier: tuple[Rung, ...]) -> Iterator[str]:
    for before in earlier:
        if before.action is not rung.action or not _covers(before, rung):
            continue
        match rung.action:
            case RungAction.STOP_BULK | RungAction.DROP_ENRICHMENT:
                vain = True
            case RungAction.CAP_OUTPUT:
                vain = (rung.max_output_tokens or 0) >= (before.max_output_tokens or 0)
            case RungAction.SHRINK_CONTEXT:
                vain = (rung.drop_share or 0) <= (before.drop_share or 0)
            case _:
                vain = False
        if vain:
            yield f"rungs[{index}].action: `{before.name}` does as much already, so this rung changes nothing"
            return


def _out_of_order(index: int, rung: Rung, earlier: tuple[Rung, ...]) -> Iterator[str]:
    shed = next((before for before in earlier if before.action is RungAction.SHED_INTERACTIVE), None)
    if shed is not None and rung.action.changes_answers:
        yield (
            f"rungs[{index}].action: `{shed.name}` refuses people before this rung would have answered them with less;"
            " availability is given up before quality"
        )


def _covers(one: Rung, other: Rung) -> bool:
    """Say whether all that one rung touches is touched by another one too."""
    theirs, ours = one.scope, other.scope
    tenants = theirs.tenants is None or (ours.tenants is not None and set(ours.tenants) <= set(theirs.tenants))
    return tenants and set(ours.classes) <= set(theirs.classes)


def _way_back(pool: str, targets: Mapping[str, list[str]]) -> tuple[str, ...] | None:
    """Return a shortest way from a pool to itself, without its end; None where there is none."""
    reached = {pool}
    ways: list[tuple[str, ...]] = [(pool,)]
    for way in ways:  # grows as it is walked: breadth first
        for target in targets.get(way[-1], ()):
            if target == pool:
                return way
            if target not in reached:
                reached.add(target)
                ways.append((*way, target))
    return None


def _from_least(way: tuple[str, ...]) -> tuple[str, ...]:
    start = way.index(min(way))
    return way[start:] + way[:start]
