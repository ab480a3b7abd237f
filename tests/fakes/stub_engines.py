"""A controller on a virtual clock before stub engines, which prefill in the order of dispatch and decode in fixed time.

A test lets requests come, and reads what became of each: when it was dispatched, first refused or evicted, and done.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fakes.door import request
from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, Released, RungChanged
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import Arrived, Event, Finished, FirstToken, Tick
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Request
from llmshed.admission.verdict import Verdict
from llmshed.ladder.standing import Step


@dataclass(slots=True)
class Story:
    """What became of one request; instants are None while it did not come to that."""

    request: Request
    came_at: float
    queued: bool = False
    dispatched_at: float | None = None
    replica: str | None = None
    done_at: float | None = None
    refused_at: float | None = None
    verdict: Verdict | None = None


@dataclass(slots=True)
class Engines:
    """The clock, the engines and the stories of all requests.

    Args:
        controller: with its replicas up.
        prefill_tokens_per_second: of each engine.
        decode_seconds_per_token: of each sequence.
        output_tokens: what a request produces, of its ceiling.
        refused: told of each refusal and eviction; it may let others come.
        check_every: events after which all invariants are asked for.
    """

    controller: AdmissionController
    prefill_tokens_per_second: float = 10_000.0
    decode_seconds_per_token: float = 0.02
    output_tokens: Callable[[Request, int], int] = lambda _, ceiling: ceiling
    refused: Callable[["Engines", Story], None] | None = None
    check_every: int = 50
    now: float = 0.0
    stories: dict[int, Story] = field(default_factory=dict)
    active: dict[str, int] = field(default_factory=dict)
    most_active: int = 0
    running: int = 0
    events: int = 0
    steps: list[tuple[float, Step]] = field(default_factory=list)
    _due: list[tuple[float, int, Event]] = field(default_factory=list)
    _prefill_ends: dict[str, float] = field(default_factory=dict)

    def at(self, when: float, event: Event) -> None:
        """Let something happen at an instant that is not past."""
        heapq.heappush(self._due, (when, len(self._due) + self.events, event))

    def come(self, *args: int, at: float | None = None, **changes: Any) -> int:
        """Let a request come, now or later, and return its key."""
        key = len(self.stories) + 1
        when = self.now if at is None else at
        made = request(key, *args, **changes)
        self.stories[key] = Story(made, when)
        self.at(when, Arrived(made))
        return key

    def reason(self, key: int) -> Reason | None:
        """Return why a request was not served, as it was told last; None where it was not told so."""
        verdict = self.stories[key].verdict
        return None if verdict is None else verdict.reason

    def run(self, until: float) -> None:
        """Let everything happen that is due by then, wake-ups to their instant."""
        while True:
            wakeup = self.controller.next_wakeup()
            due = self._due[0][0] if self._due else until + 1.0
            if min(due, until + 1.0 if wakeup is None else wakeup) > until:
                break
            if wakeup is not None and wakeup <= due:
                self.now = max(self.now, wakeup)
                self.tell(Tick())
            else:
                self.now, _, event = heapq.heappop(self._due)
                self.tell(event)
        self.now = until

    def tell(self, event: Event) -> list[Action]:
        """Tell the controller now, and do what it says."""
        self.events += 1
        actions = self.controller.handle(event, self.now)
        for action in actions:
            self._do(action)
        if self.events % self.check_every == 0:
            assert self.controller.check() == ()
        return actions

    def _do(self, action: Action) -> None:
        if isinstance(action, RungChanged):
            self.steps.append((self.now, action.step))
            return
        story = self.stories[action.key]
        match action:
            case Dispatch(key, replica, verdict):
                story.dispatched_at, story.replica, story.verdict = self.now, replica, verdict
                assert verdict.reservation is not None
                self.running += 1
                self.active[replica] = self.active.get(replica, 0) + verdict.reservation.total_tokens
                self.most_active = max(self.most_active, self.active[replica])
                self._serve(key, replica, verdict)
            case Enqueue(_, _, verdict):
                story.queued, story.verdict = True, verdict
            case Released(_, replica, tokens):
                self.running -= 1
                self.active[replica] -= tokens
                story.done_at = self.now
            case Refuse(_, verdict) | Evict(_, verdict):
                story.refused_at, story.verdict = self.now, verdict
                if self.refused is not None:
                    self.refused(self, story)

    def _serve(self, key: int, replica: str, verdict: Verdict) -> None:
        one = self.stories[key].request
        began = max(self.now, self._prefill_ends.get(replica, 0.0))
        first_at = began + one.input_tokens / self.prefill_tokens_per_second
        self._prefill_ends[replica] = first_at
        tokens = self.output_tokens(one, verdict.output_ceiling_tokens or 1)
        if one.streamed:
            self.at(first_at, FirstToken(key))
        self.at(first_at + tokens * self.decode_seconds_per_token, Finished(key, tokens * one.sequences))
