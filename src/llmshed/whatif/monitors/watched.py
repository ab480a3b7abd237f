"""A gate that is watched by all monitors."""

from llmshed.admission.actions import Action, Dispatch, Evict, Refuse, Released
from llmshed.admission.echo import Arrival
from llmshed.admission.events import Event
from llmshed.admission.policy import AdmissionPolicy, ReplicaSpec
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane
from llmshed.admission.verdict import Verdict
from llmshed.whatif.gate import Gate
from llmshed.whatif.monitors.floor import bulk_above_floor
from llmshed.whatif.monitors.idle import IdleWatch
from llmshed.whatif.monitors.ledger import unlike_told
from llmshed.whatif.monitors.priority import could_be_cured, could_have_a_place, lower_waits
from llmshed.whatif.monitors.rungs import RungWatch
from llmshed.whatif.monitors.seen import Seen, Sight

FOR_FLOOR = frozenset({Reason.TOKEN_BUDGET_EXHAUSTED, Reason.PREFILL_WINDOW_FULL, Reason.QUEUE_TIMEOUT})
"""Refusals of interactive requests before which bulk keeps to its floor."""
FOR_ROOM = frozenset({Reason.TOKEN_BUDGET_EXHAUSTED, Reason.CONCURRENCY_LIMIT, Reason.QUEUE_TIMEOUT})
"""Refusals for room on a replica."""


class WatchedGate:
    """Passes everything on, and keeps a sentence for each promise that was broken; `check` tells new ones once.

    `judged` counts the refusals that were looked at, `broken` the sentences.
    """

    def __init__(self, gate: Gate, policy: AdmissionPolicy, specs: tuple[ReplicaSpec, ...]) -> None:
        """Begin to watch a gate that holds nothing yet, with its policy and its replicas up."""
        self._gate = gate
        self._sight = Sight(policy, specs)
        self._idle = IdleWatch()
        self._rungs = RungWatch()
        self._new: list[str] = []
        self.judged = 0
        self.broken = 0

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take one fact, as the gate does."""
        self._sight.hear(event, now)
        self._rungs.hear(event)
        actions = self._gate.handle(event, now)
        for action in actions:
            if isinstance(action, Refuse | Evict) and action.verdict.reason is not None:
                self._judge(self._sight.requests[action.key], action.verdict, action.verdict.reason, now)
            elif isinstance(action, Dispatch | Released):
                self._note(unlike_told(self._sight, action))
            self._note(self._rungs.look(self._sight, action))
            self._sight.see(action, now)
        self._note(self._idle.look(self._sight, now))
        return actions

    def next_wakeup(self) -> float | None:
        """Return when the gate wants a `Tick`."""
        return self._gate.next_wakeup()

    def check(self) -> tuple[str, ...]:
        """Return the gate's broken invariants, and the promises that were broken since this was last asked."""
        new, self._new = self._new, []
        return (*self._gate.check(), *new)

    def _judge(self, seen: Seen, verdict: Verdict, reason: Reason, now: float) -> None:
        if verdict.arrival is Arrival.EARLY and verdict.delay is None:
            return  # it came before the time that it was told, so that room is not for it: the reason is the old one
        self.judged += 1
        seen.told(verdict)
        if reason in FOR_FLOOR and seen.lane is Lane.INTERACTIVE:
            self._judge_floor(seen, verdict, reason, now)
        if reason in FOR_ROOM and not _prefill_binds(verdict, reason) and could_be_cured(self._sight, seen, now):
            self._break(seen, reason, now, "would have fitted without work of lower ranks")
        if reason is Reason.QUEUE_FULL and could_have_a_place(self._sight, seen, now):
            self._break(seen, reason, now, "would have had a place without work of lower ranks")
        if reason is Reason.SHED_PRIORITY and verdict.rung is None and lower_waits(self._sight, seen, now):
            self._break(seen, reason, now, "gave its place away while work of a lower rank kept its own")

    def _judge_floor(self, seen: Seen, verdict: Verdict, reason: Reason, now: float) -> None:
        """Hold the refusal against bulk on the replica whose terms bind, or on all if it names none."""
        for account in self._sight.accounts_for(seen):
            if verdict.replica not in {None, account.spec.name}:
                continue
            above = next(bulk_above_floor(account, seen, self._sight.largest_bulk_tokens), None)
            if above is not None:
                told = f"bulk request {above.key} went to {account.spec.name} above its floor at {above.at:g} s"
                self._break(seen, reason, now, told)
                return

    def _break(self, seen: Seen, reason: Reason, now: float, told: str) -> None:
        key = seen.request.key
        self._note([f"request {key} of rank {seen.rank}, come at {seen.at:g} s, {reason} at {now:g} s: {told}"])

    def _note(self, sentences: list[str]) -> None:
        self._new += sentences
        self.broken += len(sentences)


def _prefill_binds(verdict: Verdict, reason: Reason) -> bool:
    """Say whether what ended a wait was the prefill window, by its terms, so that room would have cured nothing."""
    window = verdict.window
    if reason is not Reason.QUEUE_TIMEOUT or window is None:
        return False
    most = window.inflight_limit_tokens
    tokens = 0 if verdict.reservation is None else verdict.reservation.input_tokens
    crowded = most is not None and window.inflight_tokens > 0 and window.inflight_tokens + tokens > most
    return window.level_tokens <= 0 or crowded
