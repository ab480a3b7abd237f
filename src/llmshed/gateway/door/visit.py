"""One request of the data listener from arrival to ending: what is known of it so far, for its one decision line."""

import asyncio
from dataclasses import dataclass, field
from typing import assert_never

from aiohttp import web

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Request
from llmshed.admission.verdict import Decision, Verdict
from llmshed.engines.base import Call, Dialect, Engine
from llmshed.gateway.contract.answer_headers import Timings
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.contract.request_ids import client_request_id_of, request_id_of
from llmshed.gateway.conversations import Turns
from llmshed.gateway.daemon.snapshot import Snapshot
from llmshed.gateway.degrading.declared import NOTHING, Declared
from llmshed.gateway.door.repeats import declared_repeats
from llmshed.gateway.door.wishes import Wishes
from llmshed.gateway.relay.outcome import RelayOutcome
from llmshed.gateway.would import Would
from llmshed.observability.decisions import DecisionLine, Waits
from llmshed.observability.endings import EndedBy, Ending, Phase, termination


@dataclass(slots=True, eq=False)
class Visit:
    """What is known of one request; each step of its life fills in what it learns.

    Args:
        request: the request as it arrived.
        arrived_at: clock reading at its headers.
        arrived_wall: wall clock then, in seconds since the epoch.
        request_id: the id told to the client.
        well_framed: whether its headers leave no doubt where it ends, so that its connection may go on.
        phase: the step that it is in.
        tenant: owner of its key; None before it was checked.
        snapshot: the settings that it came under, kept to its end whatever is reloaded meanwhile.
        model: model that it was matched to; None before.
        engine: adapter that read its body; None before.
        call: its body, read; None before.
        prompt_sizes: bytes of each of its prompts, in order.
        declared: what its caller offers to leave out.
        degradations: ladder actions that made another request of it, before it was counted.
        moved_from: the pool that it came to, where another one answers.
        left_out_bytes: how much of its prompts rungs left out.
        wishes: what it wishes for, of which nothing is known before its body was read.
        fingerprint: keyed hash of its body; None before it was understood.
        drill: rung whose path it takes in a drill, `none` for the primary one; None for every other request.
        turns: the beginnings of its chat; None before it was understood and for other forms of prompt.
        asked: the request as the core sees it, counted; None before, and when its bytes alone refused it.
        queued: the verdict that let it wait; None unless it had to.
        verdict: what admission decided in the end; None before.
        would: what would have become of it, where it is let through whatever was decided; else None.
        problem: what it was refused with; None while it is not.
        untruncated_tokens: count of the prompt before `truncate` cuts it; None without one.
        counted_seconds: waiting for and running the count.
        queued_seconds: waiting for admission.
        admitted_at: clock reading at the verdict; None before.
        relayed: what became of it at the engine.
        relaying: whether the relay has it, which then ends it by itself.
        told_wait_seconds: the wait that a refusal told.
        status: status of an answer that the gateway wrote itself; 0 while there is none.
        task: the task that handles it.
        broken_off: set when the gateway itself ends the request, so that its cancellation is not the client's.
    """

    request: web.BaseRequest
    arrived_at: float
    arrived_wall: float
    snapshot: Snapshot
    request_id: str = ""
    well_framed: bool = False
    phase: Phase = Phase.AUTHENTICATION
    tenant: str | None = None
    model: str | None = None
    engine: Engine | None = None
    call: Call | None = None
    prompt_sizes: tuple[int, ...] = ()
    declared: Declared = NOTHING
    degradations: tuple[str, ...] = ()
    moved_from: str | None = None
    left_out_bytes: int = 0
    wishes: Wishes = field(default_factory=Wishes)
    fingerprint: str | None = None
    drill: str | None = None
    turns: Turns | None = None
    asked: Request | None = None
    queued: Verdict | None = None
    verdict: Verdict | None = None
    would: Would | None = None
    problem: Problem | None = None
    untruncated_tokens: int | None = None
    counted_seconds: float | None = None
    queued_seconds: float | None = None
    admitted_at: float | None = None
    relayed: RelayOutcome = field(default_factory=RelayOutcome)
    relaying: bool = False
    told_wait_seconds: float | None = None
    status: int = 0
    task: "asyncio.Task[object] | None" = field(default_factory=asyncio.current_task)
    broken_off: bool = False

    def __post_init__(self) -> None:
        """Take the client's id, or draw one."""
        self.request_id = request_id_of(self.request.headers)

    def break_off(self) -> None:
        """End a request that the relay does not have."""
        if not self.relaying and not self.broken_off and self.task is not None:
            self.broken_off = True
            self.task.cancel()

    @property
    def path(self) -> str:
        """Return the path as it was sent, undecoded: routes are compared byte by byte."""
        return self.request.rel_url.raw_path

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of errors on this path, known or not."""
        return Dialect.OPENAI if self.path.startswith("/v1/") else Dialect.NATIVE

    @property
    def client_is_here(self) -> bool:
        """Say whether the connection still stands."""
        transport = self.request.transport
        return transport is not None and not transport.is_closing()

    def reading_after(self, seconds: float | None) -> float | None:
        """Return the clock reading so many seconds after its arrival; None for None."""
        return None if seconds is None else self.arrived_at + seconds

    def let_wait(self, verdict: Verdict) -> None:
        """Note the verdict by which it waits in a queue."""
        self.queued = verdict

    def timings(self, now: float | None = None) -> Timings:
        """Return the waits for Server-Timing; `now` closes the total of an answer that is complete."""
        first_at = self.relayed.first_token_at
        return Timings(
            counting_seconds=self.counted_seconds or 0.0,
            queue_seconds=self.queued_seconds or 0.0,
            ttft_seconds=None if first_at is None else first_at - self.arrived_at,
            total_seconds=None if now is None else now - self.arrived_at,
        )

    def decision(self, now: float) -> DecisionLine:
        """Return the decision line of the request, which has ended."""
        relayed, call, asked = self.relayed, self.call, self.asked
        ending, ended_by, phase = self._ending()
        verdict = relayed.verdict or self.verdict or self.queued
        first = self.queued or self.verdict
        line = DecisionLine(
            time_seconds=self.arrived_wall,
            request_id=self.request_id,
            route=self.path,
            status=self.status or relayed.status,
            ending=ending,
            termination=termination(ended_by, phase),
            client_request_id=client_request_id_of(self.request.headers),
            tenant=self.tenant,
            config_version=self.snapshot.version,
            thresholds_version=self.snapshot.thresholds_version,
            retry_count=declared_repeats(self.request.headers),
            # What a second replica is asked for is no arrival, so this is of the first verdict.
            arrival=None if first is None else first.arrival,
            estimated_queue_seconds=self._estimated_seconds,
            would=None if self.would is None else self.would.decision,
            would_reason=None if self.would is None else self.would.reason,
            model=self.model,
            streamed=None if call is None else call.streamed,
            deadline_seconds=self.wishes.deadline_seconds,
            first_token_seconds=self.wishes.first_token_seconds,
            prompt_tokens=() if asked is None else asked.prompt_tokens,
            copies=1 if call is None else call.copies,
            asked_output_tokens=None if call is None else call.asked_output_tokens,
            output_tokens=relayed.output_tokens,
            retry_after_seconds=self.told_wait_seconds or relayed.retry_after_seconds,
            fingerprint=self.fingerprint,
            session=None if asked is None else asked.session,
            continuing=None if asked is None else asked.continuing,
            drill=self.drill,
            left_out_bytes=self.left_out_bytes,
            moved_from=self.moved_from,
            prefix_blocks=() if asked is None else asked.prefix_blocks,
            waits=self._waits(now),
        )
        if verdict is None:
            line.decision = _unjudged(ending)
        else:
            line.with_verdict(verdict)
        line.degradations = line.degradations or self.degradations
        if self._left_queue:
            line.decision = Decision.QUEUE
        line.reason = self._reason(verdict)
        return line

    @property
    def _estimated_seconds(self) -> float | None:
        """Return how long it was expected to wait when it was let wait; None where it did not have to."""
        delay = None if self.queued is None else self.queued.delay
        return None if delay is None else delay.wait_seconds

    @property
    def _left_queue(self) -> bool:
        """Say whether it ended while it waited: what was decided on it is then that it may wait, and no more."""
        return self.queued is not None and self.phase is Phase.QUEUE

    def _ending(self) -> tuple[Ending, EndedBy, Phase]:
        relayed = self.relayed
        if relayed.ending is not None:
            return relayed.ending, relayed.ended_by, relayed.phase
        if self.problem is not None and self.relaying:  # the relay itself broke
            return Ending.FAILED, EndedBy.GATEWAY, relayed.phase
        if self.problem is not None:
            # What the core let wait leaves for this reason only when its time is up.
            late = self._left_queue and self.problem.reason is Reason.DEADLINE_INFEASIBLE
            ended_by = EndedBy.DEADLINE if late else EndedBy.GATEWAY
            return Ending.EVICTED if self._left_queue else Ending.REFUSED, ended_by, self.phase
        if self.status:
            return Ending.FINISHED, EndedBy.NOBODY, Phase.COMPLETE
        return Ending.CANCELLED, EndedBy.CLIENT, self.phase

    def _reason(self, verdict: Verdict | None) -> Reason | None:
        if self.problem is not None:
            return self.problem.reason
        return self.relayed.reason or (None if verdict is None else verdict.reason)

    def _waits(self, now: float) -> Waits:
        relayed = self.relayed
        ended_at = now if relayed.ended_at is None else relayed.ended_at
        first_at, tokens = relayed.first_token_at, relayed.output_tokens
        sent_at, admitted_at = relayed.sent_at, self.admitted_at
        return Waits(
            counting_seconds=self.counted_seconds,
            queue_seconds=self.queued_seconds,
            connect_seconds=None if sent_at is None or admitted_at is None else sent_at - admitted_at,
            ttft_seconds=None if first_at is None else first_at - self.arrived_at,
            tpot_seconds=(ended_at - first_at) / (tokens - 1)
            if first_at is not None and tokens and tokens > 1
            else None,
            total_seconds=ended_at - self.arrived_at,
        )


def _unjudged(ending: Ending) -> Decision | None:
    """Return the decision on a request that never came before the core: what was served was let in."""
    match ending:
        case Ending.FINISHED:
            return Decision.ADMIT
        case Ending.REFUSED | Ending.EVICTED | Ending.FAILED:
            return Decision.REFUSE
        case Ending.CANCELLED:
            return None
        case _:
            assert_never(ending)
