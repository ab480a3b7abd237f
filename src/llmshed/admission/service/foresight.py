"""How long a request would wait for a replica, term by term."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from llmshed.admission.estimate.delay import delay_terms, raw_wait_seconds
from llmshed.admission.estimate.factor import LearntFactor
from llmshed.admission.options import Option
from llmshed.admission.policy import LanePolicy
from llmshed.admission.request import Lane, PriorityClass, Request, service_rank
from llmshed.admission.service.pool import Pool
from llmshed.admission.service.replica import AwaitedReplica, Lack, Queued
from llmshed.admission.verdict import DelayTerms


@dataclass(slots=True)  # one for each decision; a frozen one takes three times as long to make
class Asker:
    """Who asks how long it would wait: a newcomer, at its place in the order of service.

    Args:
        request: the request.
        lane: its lane.
        priority_class: its class.
        weight: its tenant's weight.
        lane_policy: its lane's numbers.
        repeat: whether it was refused before: it passes nobody who waits, and expects what first arrivals of its
            tenant leave.

    Attributes:
        rank: its place in the order of service.
        hurries: whether the request has a deadline of its own.
    """

    request: Request
    lane: Lane
    priority_class: PriorityClass
    weight: float
    lane_policy: LanePolicy
    repeat: bool = False
    rank: int = field(init=False)
    hurries: bool = field(init=False)

    def __post_init__(self) -> None:
        """Derive once what each replica asks for."""
        self.rank = service_rank(self.lane, self.priority_class)
        self.hurries = self.request.deadline is not None or self.request.first_token_deadline is not None


class Foresight(NamedTuple):
    """An option with the wait that is foreseen there, and the work that goes before.

    `first_token_seconds` is the time to first token that is foreseen, from now.
    """

    option: Option
    replica: AwaitedReplica
    ahead: Queued
    delay: DelayTerms
    first_token_seconds: float


class Outlook(NamedTuple):
    """What is the same for an asker on all replicas of a pool.

    Args:
        share_of_rank: part of the waiting work of its own rank that goes before it.
        share: part of what comes free that others leave.
        factor: learnt factor of its rank, which depends on the wait.
    """

    share_of_rank: float
    share: float
    factor: LearntFactor


def outlook_of(asker: Asker, pool: Pool, now: float) -> Outlook:
    """Return what is the same on all replicas of the pool."""
    share = pool.learnt.share_left(asker.rank, asker.request.tenant, now, repeat=asker.repeat)
    return Outlook(_share_of_rank(asker, pool), share, pool.learnt.factors[asker.rank])


def foresee(
    asker: Asker, option: Option, replica: AwaitedReplica, pool: Pool, now: float, outlook: Outlook | None = None
) -> Foresight:
    """Return how long the request would wait for that replica, behind all that is served before it.

    `outlook` is that of the asker in the pool, made here if not given.
    """
    outlook = outlook_of(asker, pool, now) if outlook is None else outlook
    ahead = replica.ahead(asker.rank, outlook.share_of_rank)
    reservation = option.reservation
    held_tokens, held_sequences = _held(replica, asker.request.key, asker.rank)
    before = Lack(ahead.tokens + held_tokens, ahead.sequences + held_sequences)
    lack_tokens = reservation.total_tokens + before.tokens - replica.free_tokens
    lack_sequences = reservation.sequences + before.sequences - replica.free_sequences
    if asker.lane is Lane.BULK:
        lack_tokens = max(lack_tokens, _bulk_lack_tokens(reservation.total_tokens, asker.rank, replica, now))
    release = replica.seconds_until(Lack(lack_tokens, lack_sequences), before, pool.learnt.outputs, now)
    bulk_prompts = sum(queued.input_tokens for queued in _bulk_until(asker.rank, replica))
    prefill = replica.window.wait_seconds(
        asker.lane, ahead.input_tokens, reservation.input_tokens, now, outlook.share, bulk_prompts
    )
    release_seconds = math.inf if release is None else release
    raw_seconds = raw_wait_seconds(release_seconds, prefill, outlook.share)
    delay = delay_terms(
        tokens_ahead=ahead.tokens,
        prefill_tokens_ahead=ahead.input_tokens,
        release_seconds=release_seconds,
        prefill_seconds=prefill,
        share=outlook.share,
        factor=outlook.factor.at(raw_seconds, now),
        own_seconds=own_seconds(asker, option, replica, pool),
    )
    prompt_seconds = delay.own_seconds if asker.request.deadline is None else replica.own_seconds(reservation)
    return Foresight(option, replica, ahead, delay, delay.wait_seconds + prompt_seconds)


def own_seconds(asker: Asker, option: Option, replica: AwaitedReplica, pool: Pool) -> float:
    """Return its own prefill and, where the whole answer is due by a deadline, its expected decode."""
    seconds = replica.own_seconds(option.reservation)
    if asker.request.deadline is None:
        return seconds
    output_tokens = pool.learnt.outputs.remaining_tokens(asker.lane, 0.0, option.ceiling_tokens)
    return seconds + output_tokens * replica.decode_seconds_per_token


def spare_seconds(asker: Asker, option: Option, replica: AwaitedReplica, pool: Pool, now: float) -> float:
    """Return how long the request may wait for its own deadlines, infinite without any; negative when it is late."""
    request, spare = asker.request, math.inf
    if request.first_token_deadline is not None:
        spare = request.first_token_deadline - now - replica.own_seconds(option.reservation)
    if request.deadline is not None:
        spare = min(spare, request.deadline - now - own_seconds(asker, option, replica, pool))
    return spare


def _share_of_rank(asker: Asker, pool: Pool) -> float:
    """Return which part of the waiting work of its own rank goes before a newcomer of its tenant."""
    queue, chosen = pool.queues[asker.lane], asker.priority_class
    waiting_tokens = queue.tokens_of(chosen)
    if waiting_tokens == 0:
        return 0.0
    ahead = queue.ahead_of(asker.request.tenant, asker.weight, chosen, continuing=asker.request.continuing)
    return min(1.0, ahead.tokens / waiting_tokens)


def _held(replica: AwaitedReplica, key: int, rank: int) -> tuple[int, int]:
    """Return what is kept for a holder of the shadow reservation that is not counted among the work ahead."""
    shadow = replica.shadow
    if shadow is None or shadow.key == key or shadow.rank <= rank:
        return 0, 0
    return shadow.total_tokens, shadow.sequences


def _bulk_until(rank: int, replica: AwaitedReplica) -> list[Queued]:
    """Return the waiting bulk of a replica up to a service rank; nothing for an interactive one."""
    return replica.queued[service_rank(Lane.BULK, PriorityClass.HIGH) : rank + 1]


def _bulk_lack_tokens(tokens: int, rank: int, replica: AwaitedReplica, now: float) -> int:
    """Return what all work must release until bulk's part of the budget has room, if what comes free is mixed alike."""
    held = replica.ledger.tokens_of(Lane.BULK)
    room = replica.bulk_room_tokens(replica.budget.bulk.reserved_max_ratio, now)
    if math.isinf(room):
        return 0
    ahead = sum(queued.tokens for queued in _bulk_until(rank, replica))
    lack = min(tokens + ahead - room, held)
    return max(0, math.ceil(lack * replica.ledger.active_tokens / held))
