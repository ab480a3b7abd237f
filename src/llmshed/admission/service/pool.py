"""What the replicas of one pool share: the queues of its lanes, and what is learnt of its waits."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from llmshed.admission.budget import Reservation
from llmshed.admission.echo import Arrival
from llmshed.admission.ledger import Charge
from llmshed.admission.options import options_on
from llmshed.admission.policy import LanePolicy
from llmshed.admission.queueing.line import LaneQueue
from llmshed.admission.queueing.timeline import Timeline
from llmshed.admission.queueing.waiting import Waiting
from llmshed.admission.request import CLASSES, SERVICE_RANKS, Lane
from llmshed.admission.service.charging import rank_of, reservation_of
from llmshed.admission.service.learning import FullRates, Learnt
from llmshed.admission.service.replica import AwaitedReplica
from llmshed.admission.state import PoolState, QueueState
from llmshed.admission.verdict import QueueTerms, Verdict

if TYPE_CHECKING:
    from llmshed.admission.service.laddering import Laddering

QUEUED_LANES = (Lane.INTERACTIVE, Lane.BULK)
"""The lanes that wait, in the order of service."""
RANKED = tuple((lane, priority_class) for lane in QUEUED_LANES for priority_class in CLASSES)
"""Lane and class of each service rank."""


class Pool:
    """The queues and the replicas of one pool.

    `look_at` is when time alone may let something start, or when a waiting request comes to its shadow reservation;
    `changed` says that something else may let one start.
    """

    def __init__(self, name: str) -> None:
        """Start without replicas, and with nobody waiting."""
        self.name = name
        self.replicas: dict[str, AwaitedReplica] = {}
        self.queues = {lane: LaneQueue() for lane in QUEUED_LANES}
        self.learnt = Learnt(self.replicas)
        self.laddering: Laddering | None = None
        self.look_at: float | None = None
        self.changed = False
        self._waiting: dict[int, Waiting] = {}
        self._requests = [0] * SERVICE_RANKS  # how many wait, by rank
        self._options: dict[int, dict[str, Reservation | None]] = {}
        self._sizes = [Timeline() for _ in range(SERVICE_RANKS)]  # by rank: the least that each who waits may take

    def __iter__(self) -> Iterator[AwaitedReplica]:
        """Yield the replicas in the order in which they came up."""
        return iter(self.replicas.values())

    @property
    def waiting(self) -> int:
        """Return how many requests wait here."""
        return len(self._waiting)

    def __contains__(self, key: int) -> bool:
        """Say whether a request waits here."""
        return key in self._waiting

    def waiting_ranks(self) -> list[int]:
        """Return the ranks of which somebody waits, in the order of service."""
        return [rank for rank, requests in enumerate(self._requests) if requests]

    def waits_above(self, rank: int) -> bool:
        """Say whether anything of a better rank waits."""
        return any(self._requests[:rank])

    def head(self, rank: int, now: float) -> Waiting:
        """Return whom service takes next of a rank of which somebody waits."""
        lane, priority_class = RANKED[rank]
        head = self.queues[lane].head(priority_class, now)
        if head is None:
            raise ValueError(f"nobody of rank {rank} waits")
        return head

    def waiting_of(self, rank: int) -> int:
        """Return how many wait with a rank."""
        return self._requests[rank]

    def least_tokens(self, rank: int) -> float:
        """Return what nobody who waits with a rank takes less than, on any replica."""
        return self._sizes[rank].first() or 0.0

    def safe_budget_tokens(self) -> int:
        """Return the safe budgets of the replicas that are up, together."""
        return sum(replica.budget.safe_budget_tokens for replica in self if replica.up)

    def most_queued_tokens(self, lane_policy: LanePolicy) -> int:
        """Return the bound of a lane's queue in tokens."""
        return self.safe_budget_tokens() if lane_policy.queue_tokens is None else lane_policy.queue_tokens

    def queue_terms(self, lane: Lane, lane_policy: LanePolicy) -> QueueTerms:
        """Return a lane's queue as it is now, and its bounds."""
        queue = self.queues[lane]
        return QueueTerms(
            requests=len(queue),
            tokens=queue.tokens,
            most_requests=lane_policy.queue_requests,
            most_tokens=self.most_queued_tokens(lane_policy),
            max_residence_seconds=lane_policy.max_residence_seconds,
        )

    def join(self, waiting: Waiting, now: float) -> None:
        """Let a request wait, charged to its preferred replica."""
        self._charge(waiting, 1)
        self.changed = True
        self.queues[waiting.chosen.lane].join(waiting, now)
        self._waiting[waiting.key] = waiting
        self._options[waiting.key] = {waiting.replica: waiting.reservation}
        self._requests[waiting.rank] += 1
        self.learnt.ghosts.joined(waiting.key, waiting.rank)
        self._sizes[waiting.rank].add(waiting.key, waiting.least_tokens)
        self._tell_bulk(now)

    def leave(self, key: int, now: float) -> Waiting:
        """Take a request out of its queue, whatever comes next; its shadow reservation goes with it."""
        waiting = self._waiting[key]
        self.queues[waiting.chosen.lane].leave(key)
        self._uncharge(waiting, now)
        return waiting

    def take_expired(self, now: float) -> list[Waiting]:
        """Take out all whose wait is over."""
        expired = [waiting for queue in self.queues.values() for waiting in queue.take_expired(now)]
        for waiting in expired:
            self._uncharge(waiting, now)
        return expired

    def next_expiry(self) -> float | None:
        """Return when the next wait is over; None while nobody waits."""
        return _earliest([queue.next_expiry() for queue in self.queues.values()])

    def is_due(self, now: float) -> bool:
        """Say whether somebody waits and may start by what happened or by the time that passed."""
        return bool(self._waiting) and (self.changed or (self.look_at is not None and self.look_at <= now))

    def next_wakeup(self) -> float | None:
        """Return when the next wait is over or may end; None while nobody waits."""
        return _earliest((self.next_expiry(), self.look_at)) if self.waiting else None

    def reservation_on(self, waiting: Waiting, replica: AwaitedReplica) -> Reservation | None:
        """Return what a waiting request would hold on a replica; None where it could never run."""
        known = self._options[waiting.key]
        name = replica.spec.name
        if name not in known:
            (option,) = options_on((replica,), waiting.request, waiting.lane_policy, waiting.cap)
            possible = option.possible(waiting.request) and option.takes_prompt(waiting.request, waiting.chosen.lane)
            known[name] = option.reservation if possible else None
        return known[name]

    def keep_off(self, key: int, name: str) -> None:
        """Never serve a waiting request on that replica, which was lost before it read it and may still count as up."""
        self._options[key][name] = None

    def came_up(self, name: str) -> None:
        """Ask anew what waiting requests would hold on a replica that came up, since its numbers may be others."""
        for known in self._options.values():
            known.pop(name, None)
        self.changed = True

    def waiting_for(self, name: str) -> list[Waiting]:
        """Return all who wait with that replica as the preferred one."""
        return [waiting for queue in self.queues.values() for waiting in queue if waiting.replica == name]

    def held_back(self) -> list[Waiting]:
        """Return all who wait and whose like a rung in force holds back."""
        measures = None if self.laddering is None else self.laddering.measures
        if measures is None:
            return []
        return [w for queue in self.queues.values() for w in queue if measures.holding_back(w.rank, w.tenant)]

    def move_to_another(self, waiting: Waiting) -> bool:
        """Charge a waiting request to the replica that is up with the least waiting work; False if there is none."""
        homes = [r for r in self if r.up and r.spec.name != waiting.replica and self.reservation_on(waiting, r)]
        if not homes:
            return False
        home = min(homes, key=lambda r: (sum(queued.tokens for queued in r.queued), r.spec.name))
        self._charge(waiting, -1)
        waiting.replica = home.spec.name
        self._charge(waiting, 1)
        return True

    def interactive_came(self, now: float) -> None:
        """Note that an interactive request arrived, whatever became of it."""
        for replica in self:
            replica.interactive_came(now)

    def first_came(self, verdict: Verdict, tenant: str, now: float) -> None:
        """Note a first arrival that could be served here, whatever became of it."""
        self.learnt.own_shares.asked(tenant, reservation_of(verdict).total_tokens, now)

    def take(self, charge: Charge, replica: AwaitedReplica, verdict: Verdict, weight: float, now: float) -> None:
        """Charge a dispatched request to a replica, and to its tenant's share."""
        self._note_idling(now)
        replica.take(charge, now)
        self.queues[charge.lane].served(charge.tenant, weight, charge.reservation.total_tokens)
        self.learnt.dispatched(replica.spec.name, rank_of(verdict), charge.reservation, now)
        if self.laddering is not None:
            self.laddering.let_in(charge.reservation.total_tokens)

    def give_back(self, replica: AwaitedReplica, key: int, now: float) -> Charge:
        """Free a request's charge; somebody may start now."""
        self._note_idling(now)
        charge = replica.give_back(key, now)
        self.learnt.released(replica.spec.name, charge.reservation.total_tokens, now)
        self.changed = True
        return charge

    def settle(self, charge: Charge, weight: float, output_tokens: int) -> None:
        """Correct a tenant's share by what its request really used."""
        unused = charge.reservation.most_output_tokens - output_tokens
        self.queues[charge.lane].settle(charge.tenant, weight, -unused, charge.dispatched_at)

    def learn_answer(self, replica: AwaitedReplica, charge: Charge, output_tokens: int, now: float) -> None:
        """Learn length and pace from an answer that ended by itself."""
        sequences = charge.reservation.sequences
        self.learnt.outputs.learn(charge.lane, round(output_tokens / sequences), charge.output_ceiling_tokens)
        if charge.streamed and charge.first_token_at is not None and sequences == 1:
            replica.pace.learn(now - charge.first_token_at, output_tokens)

    def full_rates(self, lane: Lane, ceiling_tokens: int, reservation: Reservation) -> FullRates:
        """Return what the pool would give back and take in if it were full of requests like this one.

        By Little's law the safe budget over the time that one holds its part, and never more than prefill lets in.
        """
        output_tokens = self.learnt.outputs.remaining_tokens(lane, 0.0, max(1, ceiling_tokens))
        input_tokens, total_tokens = reservation.input_tokens, reservation.total_tokens
        tokens = prompts = 0.0
        for replica in self:
            if replica.up:
                prompt_rate = replica.window.most_tokens_per_second
                own_seconds = input_tokens / prompt_rate
                held_seconds = own_seconds + output_tokens * replica.decode_seconds_per_token
                by_budget = replica.budget.safe_budget_tokens / held_seconds
                by_prefill = total_tokens / own_seconds if own_seconds > 0 else by_budget
                tokens += min(by_budget, by_prefill)
                prompts += prompt_rate
        return FullRates(max(tokens, 1.0), max(prompts, 1.0))

    def note_refused(self, verdict: Verdict, now: float) -> None:
        """Promise room to a refused request, and follow it until it would have fit."""
        if verdict.delay is None or verdict.lane is None:
            return
        reservation = reservation_of(verdict)
        full = self.full_rates(verdict.lane, verdict.output_ceiling_tokens or 1, reservation)
        self.learnt.promise(rank_of(verdict), reservation, full, now)
        if verdict.arrival is Arrival.FIRST:  # a repeat waits for others too, whom no ghost would see
            self.learnt.follow(rank_of(verdict), verdict.delay, reservation, now)

    def state(self, now: float) -> PoolState:
        """Return a frozen snapshot."""
        oldest = {lane: queue.oldest_joined_at() for lane, queue in self.queues.items()}
        return PoolState(
            name=self.name,
            queues=tuple(
                QueueState(lane, cls, queue.requests_of(cls), queue.tokens_of(cls), queue.input_tokens_of(cls))
                for lane, queue in self.queues.items()
                for cls in CLASSES
            ),
            oldest_age_seconds={lane: 0.0 if at is None else now - at for lane, at in oldest.items()},
            factors=tuple(factor.value(now) for factor in self.learnt.factors),
            promised_seconds=tuple(self.learnt.promised_seconds(rank, now) for rank in range(SERVICE_RANKS)),
            ghosts=len(self.learnt.ghosts),
            ghosts_fitted=self.learnt.ghosts.fitted,
            ghosts_given_up=self.learnt.ghosts.given_up,
            ladder=None if self.laddering is None else self.laddering.standing,
        )

    def check(self) -> list[str]:
        """Return the invariants that do not hold: queues hold, and replicas are charged with just what waits."""
        wrong = [text for queue in self.queues.values() for text in queue.check()]
        wrong += [text for sizes in self._sizes for text in sizes.check()]
        everyone = [w for queue in self.queues.values() for w in queue]
        if {w.key: w for w in everyone} != self._waiting:
            wrong.append("the queues and who is said to wait disagree")
        for rank, sizes in enumerate(self._sizes):
            if not len(sizes) == self._requests[rank] == sum(w.rank == rank for w in everyone):
                wrong.append(f"{self._requests[rank]} of rank {rank} are said to wait, {len(sizes)} are sized")
        for name, replica in self.replicas.items():
            for rank, queued in enumerate(replica.queued):
                mine = [w for w in everyone if w.replica == name and w.rank == rank]
                counted = (len(mine), sum(w.total_tokens for w in mine), sum(w.input_tokens for w in mine))
                if counted != (queued.requests, queued.tokens, queued.input_tokens):
                    wrong.append(f"{name}: rank {rank} is charged with {queued}, {counted} wait")
            if replica.shadow is not None and replica.shadow not in everyone:
                wrong.append(f"{name}: request {replica.shadow.key} holds the shadow reservation and does not wait")
            wrong += [f"{name}: {text}" for text in replica.window.check()]
        wrong += [f"request {w.key} waits for {w.replica}" for w in everyone if w.replica not in self.replicas]
        return wrong

    def _note_idling(self, now: float) -> None:
        """Note room that nobody came for, before what is charged changes."""
        if not self._waiting and all(replica.at_ease for replica in self):
            self.learnt.idled(now)

    def _uncharge(self, waiting: Waiting, now: float) -> None:
        self._charge(waiting, -1)
        self.changed = True  # those behind it may start
        del self._waiting[waiting.key]
        self._requests[waiting.rank] -= 1
        self.learnt.ghosts.left(waiting.key, waiting.rank)
        del self._options[waiting.key]
        self._sizes[waiting.rank].discard(waiting.key)
        self._tell_bulk(now)

    def _charge(self, waiting: Waiting, sign: int) -> None:
        replica = self.replicas[waiting.replica]
        replica.queued[waiting.rank].add(waiting, sign)
        if sign < 0 and replica.shadow is waiting:
            replica.shadow = None
            self.changed = True

    def _tell_bulk(self, now: float) -> None:
        """Tell the windows whether bulk waits, since its floor credit grows only then."""
        waits = len(self.queues[Lane.BULK]) > 0
        for replica in self:
            replica.window.bulk_waits(now, waiting=waits)


def _earliest(times: Iterable[float | None]) -> float | None:
    return min([at for at in times if at is not None], default=None)
