"""The gate around any rule: it keeps the books and the lines, and answers every arrival once."""

from dataclasses import replace
from typing import assert_never

from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse
from llmshed.admission.decide import draining_verdict, lost_again_verdict, unserved_verdict
from llmshed.admission.events import (
    Arrived,
    BudgetChanged,
    Cancelled,
    Draining,
    Event,
    Failed,
    Finished,
    FirstToken,
    NotSent,
    PolicyChanged,
    ReplicaDown,
    ReplicaRead,
    ReplicaRemoved,
    ReplicaUp,
    RungHeld,
    RungReleased,
    Tick,
)
from llmshed.admission.policy import AdmissionPolicy
from llmshed.admission.replica import Replica
from llmshed.admission.request import Request
from llmshed.admission.verdict import Decision, Verdict
from llmshed.whatif.gates.books import Books
from llmshed.whatif.gates.line import Line
from llmshed.whatif.gates.rule import Rule, TurnAway
from llmshed.whatif.gates.work import Work, refused, work_of


class RuleGate:
    """A `Gate` that follows one rule.

    Work for the same pools waits in one line, so that no pool holds up another. Invariants, stated by `check`: those
    of the books; nothing waits that runs; no line is longer than the rule allows; those of the rule.
    """

    def __init__(self, policy: AdmissionPolicy, rule: Rule, books: Books) -> None:
        """Start with nothing waiting; `books` are those that the rule reads."""
        self._policy = policy
        self._rule = rule
        self._books = books
        self._lines: dict[frozenset[str], Line] = {}
        self._arrived_total = 0
        self._draining = False
        self._now = 0.0

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take one fact and return what is to be done about it.

        Raises:
            KeyError: the event names a request that is not live, or a replica that never came up.
            ValueError: a request arrives under a key that is in use.
        """
        self._now = now
        actions: list[Action] = list(self._books.free_due(now))
        self._rule.observe(event, now)
        actions += self._take(event, now)
        actions += self._serve(now)
        return actions

    def next_wakeup(self) -> float | None:
        """Return when something is timed: a release, the end of a wait, or another look of the rule."""
        first = [work for line in self._lines.values() if (work := line.first()) is not None]
        times = [self._books.next_release(), self._rule.next_look(self._now, first)]
        times += [line.next_end() for line in self._lines.values()]
        return min((at for at in times if at is not None), default=None)

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
        wrong = self._books.check() + self._rule.check()
        waiting = [work.key for line in self._lines.values() for work in line]
        wrong += [f"request {key} runs and waits" for key in waiting if key in self._books.running]
        if len(set(waiting)) != len(waiting):
            wrong.append("a request waits twice")
        wrong += [
            f"{len(line)} requests wait, {self._rule.most_waiting} may"
            for line in self._lines.values()
            if len(line) > self._rule.most_waiting
        ]
        return tuple(wrong)

    def _take(self, event: Event, now: float) -> list[Action]:  # noqa: C901, PLR0912 - one flat case an event
        """Do what one event asks for; work that waits is looked at afterwards."""
        match event:
            case Arrived(request):
                return self._arrive(request, now)
            case FirstToken(key):
                self._books.first_token(key, now)
            case Finished(key):
                return [self._books.end(key)]
            case Failed(key, engine_holds):
                return self._abandon(key, now, engine_holds=engine_holds)
            case Cancelled(key, sent):
                return self._abandon(key, now, engine_holds=sent)
            case NotSent(key):
                return self._send_elsewhere(key, now)
            case ReplicaUp(spec):
                self._books.come_up(spec)
            case ReplicaDown(name):
                self._books.go_down(name)
            case ReplicaRemoved(name):
                self._books.remove(name)
            case BudgetChanged(name, budget):
                self._books.change_budget(name, budget)
            case PolicyChanged(policy):
                self._policy = policy
            case Draining():
                self._draining = True
            case RungHeld() | RungReleased() | ReplicaRead() | Tick():
                pass  # no other policy has a ladder
            case _:
                assert_never(event)
        return []

    def _arrive(self, request: Request, now: float) -> list[Action]:
        if request.key in self._books.running or any(request.key in line for line in self._lines.values()):
            raise ValueError(f"request {request.key} is already live")
        self._arrived_total += 1
        work = work_of(request, self._policy, self._books.replicas, self._arrived_total)
        if isinstance(work, Verdict):
            return [Refuse(request.key, work)]
        if self._draining:
            return [Refuse(work.key, _with_class(work, draining_verdict()))]
        candidates = work.candidates(self._books.replicas)
        if not candidates:
            return [Refuse(work.key, _with_class(work, unserved_verdict(known=bool(self._books.replicas))))]
        line = self._lines.setdefault(work.pools, Line(self._rule.rank))
        first = line.first()
        answer: Replica | TurnAway | None = self._rule.turn_away(work, candidates, now)
        if answer is None and (first is None or self._rule.rank(work) < self._rule.rank(first)):
            answer = self._rule.place(work, candidates, line, now)
        match answer:
            case None:
                return self._enqueue(work, line, candidates[0])
            case TurnAway():
                return [Refuse(work.key, _verdict(work, answer))]
            case _:
                return [self._send(work, answer, now)]

    def _enqueue(self, work: Work, line: Line, about: Replica) -> list[Action]:
        """Let work wait; from a full line the last by rank is turned away, which may be the work itself."""
        line.join(work, self._rule.waits_until(work))
        verdict = replace(work.verdict(Decision.QUEUE, about), replica=None, equation=None)
        queued = Enqueue(work.key, about.spec.pool, verdict)
        if len(line) <= self._rule.most_waiting:
            return [queued]
        last = line.leave(line.last().key)
        verdict = _verdict(last, self._rule.displaced(last))
        return [Refuse(last.key, verdict)] if last is work else [queued, Evict(last.key, verdict)]

    def _serve(self, now: float) -> list[Action]:
        """Evict whose wait is over, then send what may go, the first by rank of all lines first."""
        actions: list[Action] = [
            Evict(work.key, _verdict(work, self._rule.late(work)))
            for line in self._lines.values()
            for work in line.take_overdue(now)
        ]
        open_lines = [line for line in self._lines.values() if len(line)]
        while open_lines:
            ranked = [(self._rule.rank(first), line, first) for line in open_lines if (first := line.first())]
            _, line, work = min(ranked, key=lambda entry: entry[0])
            candidates = work.candidates(self._books.replicas)
            answer = self._rule.place(work, candidates, line, now) if candidates else None
            if answer is not None:
                line.leave(work.key)
                actions.append(
                    Evict(work.key, _verdict(work, answer))
                    if isinstance(answer, TurnAway)
                    else self._send(work, answer, now)
                )
            if answer is None or len(line) == 0:
                open_lines.remove(line)
        return actions

    def _send(self, work: Work, replica: Replica, now: float, *, again: bool = False) -> Dispatch:
        dispatch = self._books.send(work, replica, now, again=again)
        self._rule.sent(work, replica, now)
        return dispatch

    def _abandon(self, key: int, now: float, *, engine_holds: bool) -> list[Action]:
        """End a request whose answer nobody takes, waiting or running."""
        for line in self._lines.values():
            if key in line:
                line.leave(key)
                return []
        if not engine_holds:
            return [self._books.end(key)]
        self._books.abandon(key, now)
        return []

    def _send_elsewhere(self, key: int, now: float) -> list[Action]:
        """Send a request that its replica never read to another one, once."""
        lost = self._books.sent(key)
        released = self._books.end(key)
        work = lost.work
        candidates = [r for r in work.candidates(self._books.replicas) if r.spec.name != lost.replica]
        answer = self._rule.place(work, candidates, (), now) if candidates and not lost.again else None
        match answer:
            case None:
                verdict = lost_again_verdict(_with_class(work, Verdict(Decision.REFUSE)))
                if not lost.again:
                    verdict = replace(
                        verdict, detail="the replica was lost before it read the request; no other took it"
                    )
                return [released, Refuse(key, verdict)]
            case TurnAway():
                return [released, Refuse(key, _verdict(work, answer))]
            case _:
                return [released, self._send(work, answer, now, again=True)]


def _verdict(work: Work, turned: TurnAway) -> Verdict:
    return refused(work, turned.reason, turned.detail, turned.retry_after_seconds)


def _with_class(work: Work, verdict: Verdict) -> Verdict:
    """Return a verdict that names the lane, intent and class of its request."""
    chosen = work.chosen
    return replace(verdict, lane=chosen.lane, intent=chosen.intent, priority_class=chosen.priority_class)
