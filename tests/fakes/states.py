"""A pool in which work waits, a prefill window in debt and a ladder at rest, as the core tells of them."""

from llmshed.admission.request import Lane, PriorityClass
from llmshed.admission.state import PoolState, QueueState
from llmshed.admission.verdict import WindowTerms
from llmshed.ladder.standing import Standing

WAITING = {(Lane.INTERACTIVE, PriorityClass.NORMAL): (3, 900, 700), (Lane.BULK, PriorityClass.LOW): (1, 9_000, 8_000)}
POOL = PoolState(
    "main",
    tuple(
        QueueState(lane, one, *WAITING.get((lane, one), (0, 0, 0)))
        for lane in (Lane.INTERACTIVE, Lane.BULK)
        for one in PriorityClass
    ),
    {Lane.INTERACTIVE: 0.25, Lane.BULK: 31.5},
    factors=(1.0, 1.25, 1.0, 1.0, 1.0, 4.0),
    promised_seconds=(0.0, 2.5, 3.0, 0.0, 0.0, 60.0),
    ghosts=7,
    ghosts_fitted=90,
    ghosts_given_up=4,
)
METERED = WindowTerms(
    tokens_per_second=8_000.0,
    level_tokens=-500.0,
    inflight_tokens=3_000,
    inflight_limit_tokens=4_096,
    bulk_level_tokens=600.0,
    bulk_credit_tokens=-20.0,
)
GROUND = Standing("small@1", 0, None, (), 0, 0, 0)
