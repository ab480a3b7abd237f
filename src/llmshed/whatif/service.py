"""What happens between the gateway's door and a client's last token: the gate's words performed, the engines' told.

Each try has exactly one ending: its answer ends, the gate refuses or evicts it, or its engine refuses or loses it. The
last two are told to the gate as a failure, since it had dispatched the request. A client whose try was not served
comes back or gives up, as its model says; it waits from the instant at which it was told.
"""

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import assert_never

from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released, RungChanged
from llmshed.admission.events import Arrived, Event, Failed, Finished, FirstToken, Tick
from llmshed.admission.reasons import Reason
from llmshed.admission.verdict import Verdict
from llmshed.simulation.results import Ended
from llmshed.simulation.results import Failed as EngineFailed
from llmshed.simulation.results import FirstToken as EngineFirstToken
from llmshed.whatif.belief import Belief
from llmshed.whatif.clients_at_work import ClientsAtWork
from llmshed.whatif.door import Door
from llmshed.whatif.gate import Gate
from llmshed.whatif.measures import Tally
from llmshed.whatif.replicas import Replicas, Told
from llmshed.whatif.rungs_used import RungsUsed
from llmshed.whatif.setting import Setting
from llmshed.whatif.visits import Try, Visit

ENGINE_FAILED = "engine_failed"
"""Why a request was not served that an engine lost."""


class Service:
    """Drives one gate: the only caller of it, as the daemon's driver is."""

    def __init__(
        self,
        setting: Setting,
        gate: Gate,
        replicas: Replicas,
        door: Door,
        clients: ClientsAtWork,
        tally: Tally,
        belief: Belief,
        rungs: RungsUsed,
    ) -> None:
        """Start with nobody inside."""
        self._traced = setting.traced
        self._gate = gate
        self._replicas = replicas
        self._door = door
        self._clients = clients
        self._tally = tally
        self._belief = belief
        self._rungs = rungs
        self._keys = count(1)
        self._inbox: deque[Event] = deque()
        self._tries: dict[int, Try] = {}
        self._retries: list[tuple[float, int, Visit]] = []
        self._retry_order = count()

    def visits(self) -> list[Visit]:
        """Return the visits that have no ending: those inside by arrival, then those that would come back."""
        inside = [attempt.visit for attempt in self._tries.values()]
        return inside + [visit for _, _, visit in sorted(self._retries, key=lambda entry: entry[:2])]

    @property
    def waiting(self) -> int:
        """Return how many tries no replica has yet."""
        return sum(attempt.replica is None for attempt in self._tries.values())

    @property
    def next_retry_at(self) -> float | None:
        """Return when the next refused client comes back; None when none will."""
        return self._retries[0][0] if self._retries else None

    @property
    def next_wakeup(self) -> float | None:
        """Return when the gate wants a tick."""
        return self._gate.next_wakeup()

    def pop_retry(self) -> Visit:
        """Return the client that comes back next."""
        return heappop(self._retries)[2]

    def begin_try(self, visit: Visit, now: float) -> Try:
        """Let a visit arrive, for the first time or again; the gate does not see it yet."""
        visit.tries += 1
        attempt = Try(next(self._keys), visit, now)
        self._tries[attempt.key] = attempt
        self._traced[attempt.key] = visit.traced
        self._tally.begin_try(attempt, now)
        return attempt

    def offer(self, attempt: Try, now: float) -> None:
        """Bring a try to the gate."""
        self._tell(Arrived(self._door.request(attempt)), now)

    def tick(self, now: float) -> None:
        """Wake the gate."""
        self._tell(Tick(), now)

    def hear(self, told: list[tuple[Try, Told]], now: float) -> None:
        """Take what engines told, in order, and pass it on to the gate."""
        for attempt, result in told:
            self._hear(attempt, result, now)
        self._settle(now)

    def check(self) -> tuple[str, ...]:
        """Return the invariants of the gate and of the engines that do not hold, one sentence each."""
        engines = tuple(f"{one.name}: {text}" for one in self._replicas for text in one.model.check())
        return tuple(self._gate.check()) + engines

    def _tell(self, event: Event, now: float) -> None:
        self._inbox.append(event)
        self._settle(now)

    def _settle(self, now: float) -> None:
        """Let the gate handle what is there, and what follows from that, until nothing does."""
        while self._inbox:
            for action in self._gate.handle(self._inbox.popleft(), now):
                self._perform(action, now)

    def _perform(self, action: Action, now: float) -> None:
        match action:
            case Dispatch():
                self._belief.dispatched(action)
                self._dispatch(self._tries[action.key], action, now)
            case Refuse(key, verdict) | Evict(key, verdict):
                self._rungs.refused(verdict)
                self._refuse(self._tries[key], verdict, now)
            case Released():
                self._belief.released(action)
            case RungChanged(step):
                self._rungs.stepped(step, now)
            case Enqueue():
                pass
            case _:
                assert_never(action)

    def _dispatch(self, attempt: Try, action: Dispatch, now: float) -> None:
        attempt.replica = action.replica
        attempt.dispatched_at = now
        attempt.degradations = action.verdict.degradations
        self._tally.dispatch(attempt, now)
        replica = self._replicas[action.replica]
        for other, result in self._replicas.advance(action.replica, now):
            self._hear(other, result, now)
        traced = attempt.visit.traced
        keys = (attempt.key, *(next(self._keys) for _ in range(traced.copies - 1)))
        self._traced.update(dict.fromkeys(keys[1:], traced))
        refusal = replica.send(attempt, action.verdict.output_ceiling_tokens, keys, now)
        self._replicas.note_change(action.replica)
        if refusal is None:
            return
        for key in keys[1:]:
            del self._traced[key]
        wait = self._clients.after_engine_refusal(attempt.visit, refusal)
        self._end_unserved(attempt, refusal.value, wait, now, failed=True)
        self._inbox.append(Failed(attempt.key, engine_holds=False))

    def _hear(self, attempt: Try, result: Told, now: float) -> None:
        if result.key not in attempt.open_sequences:
            return  # another sequence of it failed in the same step, and took the request with it
        match result:
            case EngineFirstToken(key, at):
                if attempt.note_first_token(key, at):
                    self._tally.first_token(attempt, now)
                    if attempt.visit.traced.streamed:
                        self._inbox.append(FirstToken(attempt.key))
            case Ended(key, output_tokens=output_tokens, at=at):
                self._tally.produce(attempt, output_tokens)
                last = attempt.note_end(key, output_tokens, at)
                if key != attempt.key:
                    del self._traced[key]
                if last:
                    self._finish(attempt)
            case EngineFailed(key):
                self._fail(attempt, key, now)
            case _:
                assert_never(result)

    def _finish(self, attempt: Try) -> None:
        self._tally.finish(attempt)
        self._rungs.finished(attempt)
        self._forget(attempt)
        self._inbox.append(Finished(attempt.key, attempt.output_tokens))

    def _fail(self, attempt: Try, sequence: int, now: float) -> None:
        """End a try that lost a sequence; the others of it are left, and the engine may hold them for a while."""
        attempt.open_sequences.pop(sequence, None)
        others = [key for key in (sequence, *attempt.open_sequences) if key != attempt.key]
        holds = self._replicas[attempt.replica or ""].abandon(attempt)
        for key in others:
            self._traced.pop(key, None)
        wait = self._clients.after_failure(attempt.visit)
        self._end_unserved(attempt, ENGINE_FAILED, wait, now, failed=True)
        self._inbox.append(Failed(attempt.key, engine_holds=holds))

    def _refuse(self, attempt: Try, verdict: Verdict, now: float) -> None:
        reason = verdict.reason or Reason.INTERNAL_ERROR  # a refusal without a reason is the gate's fault
        wait = self._clients.after_verdict(attempt.visit, reason, verdict)
        self._end_unserved(attempt, reason.value, wait, now, failed=False)

    def _end_unserved(self, attempt: Try, reason: str, wait: float | None, now: float, *, failed: bool) -> None:
        self._tally.refuse(attempt, reason, now)
        self._forget(attempt)
        if wait is None:
            self._tally.give_up(attempt.visit, failed=failed)
        else:
            heappush(self._retries, (now + wait, next(self._retry_order), attempt.visit))

    def _forget(self, attempt: Try) -> None:
        del self._tries[attempt.key]
        del self._traced[attempt.key]
