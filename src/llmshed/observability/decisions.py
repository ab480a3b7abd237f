"""The decision log: one line of `llmshed.decision/1` at the end of each request, never a byte of its text."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, Self

import orjson

from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.echo import Arrival
from llmshed.admission.reasons import Reason
from llmshed.admission.report import (
    delay_report,
    equation_report,
    queue_report,
    reservation_report,
    window_report,
)
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.admission.verdict import Decision, DelayTerms, QueueTerms, Verdict, WindowTerms
from llmshed.observability.endings import Ending
from llmshed.observability.routes import route_label
from llmshed.observability.text import one_line

SCHEMA = "llmshed.decision/1"

MAX_LISTED = 1000
"""Most decisions that one query lists: turning one into a record takes about 10 us of the event loop."""


class Waits(NamedTuple):
    """Where the time of a request went, in seconds from its arrival or of a phase; None where there was no such phase.

    Args:
        counting_seconds: waiting for and running the token count.
        queue_seconds: waiting for admission, next to nothing where it was answered at once.
        connect_seconds: from admission until the engine had been sent the request.
        ttft_seconds: from arrival to the first token, so that counting and queueing are included; streams only.
        tpot_seconds: mean time per output token after the first; streams of two tokens or more only.
        total_seconds: from arrival to the last byte, or to the end of a failed request.
    """

    counting_seconds: float | None = None
    queue_seconds: float | None = None
    connect_seconds: float | None = None
    ttft_seconds: float | None = None
    tpot_seconds: float | None = None
    total_seconds: float | None = None


NO_WAITS = Waits()


@dataclass(slots=True)
class DecisionLine:
    """One request from arrival to ending, with every number that its decision rests on.

    Nobody changes one that is written; to make a frozen one, field by field, takes three times as long.

    Args:
        time_seconds: wall clock at arrival, in seconds since the epoch.
        request_id: the id told to the client.
        route: path of a known route; any other is written as `other`.
        status: HTTP status of the answer; 0 when the client left before it got one.
        ending: how the request ended.
        termination: who ended it in which phase, from `endings.termination`.
        client_request_id: id that the client gave, checked for its form; None when it gave none.
        tenant: the tenant's name; None before it was known.
        model: model or alias of the pool that the request was matched to; not written down with `not_found`, since it
            is then any text that a client chose.
        pool: name of the pool.
        replica: replica that served it, or whose terms bind.
        profile: name and version of the profile behind the replica's budget.
        config_version: version of the configuration that it was decided under.
        thresholds_version: version of the lanes' thresholds and objectives in that configuration.
        lane: lane that it was classified into.
        intent: intent in force.
        priority_class: class in force.
        streamed: whether the answer is a stream; None before the body was read.
        deadline_seconds: arrival to the time by which the whole answer has to be there; None without one.
        first_token_seconds: arrival to the time by which a stream has to begin; None without one.
        retry_count: what the client says of its tries (`x-stainless-retry-count`); untrusted.
        arrival: whether it was seen before; None where admission was not asked.
        prompt_tokens: input tokens of each prompt, empty before they were counted.
        copies: sequences of each prompt.
        asked_output_tokens: ceiling that the client asked for, for each sequence.
        output_ceiling_tokens: ceiling that was written on the wire.
        output_tokens: tokens that the engine generated, as far as seen.
        reservation: the terms of what the request charged, or would have.
        equation: the terms of the replica that decided.
        delay: the delay estimate behind the decision; None where none was made.
        window: the prefill window of that replica; None where it was not asked.
        queue: the lane's queue in that pool; None likewise.
        detail: why not, as a sentence; empty where the terms say it all.
        decision: what was decided; None when the client left before anything was.
        reason: why it was not served.
        would: what was decided on a request that was let through whatever that is, as in observe mode; else None.
        would_reason: why it would not have been served; None when it would have been, and as for `would`.
        retry_after_seconds: the wait that the client was told, after jitter.
        fingerprint: keyed hash of the body, by which a repeat of a request is known; None before it was understood.
        session: keyed hash of the session.
        continuing: whether it goes on with a conversation that was served here; None before it was counted.
        prefix_blocks: keyed hashes of the leading blocks of the prompt.
        degradations: ladder actions that changed the answer, in the order of their rungs.
        left_out_bytes: bytes of its prompts that rungs left out, for an estimate of what that saved; not written down.
        moved_from: pool that it was meant for, if a rung sent it to another one.
        rung: rung of the ladder that refused it.
        drill: rung whose path a request of a drill took, `none` for the primary one; None for every other request.
        estimated_queue_seconds: how long it was expected to wait when it was let wait; None where it was not.
        waits: where the time went.
    """

    time_seconds: float
    request_id: str
    route: str
    status: int
    ending: Ending
    termination: str
    client_request_id: str | None = None
    tenant: str | None = None
    model: str | None = None
    pool: str | None = None
    replica: str | None = None
    profile: str | None = None
    config_version: str | None = None
    thresholds_version: str | None = None
    lane: Lane | None = None
    intent: Intent | None = None
    priority_class: PriorityClass | None = None
    streamed: bool | None = None
    deadline_seconds: float | None = None
    first_token_seconds: float | None = None
    retry_count: int | None = None
    arrival: Arrival | None = None
    prompt_tokens: tuple[int, ...] = ()
    copies: int = 1
    asked_output_tokens: int | None = None
    output_ceiling_tokens: int | None = None
    output_tokens: int | None = None
    reservation: Reservation | None = None
    equation: Equation | None = None
    delay: DelayTerms | None = None
    window: WindowTerms | None = None
    queue: QueueTerms | None = None
    detail: str = ""
    decision: Decision | None = None
    reason: Reason | None = None
    would: Decision | None = None
    would_reason: Reason | None = None
    retry_after_seconds: float | None = None
    fingerprint: str | None = None
    session: str | None = None
    continuing: bool | None = None
    prefix_blocks: tuple[str, ...] = ()
    degradations: tuple[str, ...] = ()
    left_out_bytes: int = 0
    moved_from: str | None = None
    rung: str | None = None
    drill: str | None = None
    estimated_queue_seconds: float | None = None
    waits: Waits = NO_WAITS

    def with_verdict(self, verdict: Verdict) -> Self:
        """Take up what admission decided, all but the promised wait, which the contract draws; returns the line."""
        self.decision = verdict.decision
        self.reason = verdict.reason
        self.lane = verdict.lane
        self.intent = verdict.intent
        self.priority_class = verdict.priority_class
        self.output_ceiling_tokens = verdict.output_ceiling_tokens
        self.reservation = verdict.reservation
        self.equation = verdict.equation
        self.delay = verdict.delay
        self.window = verdict.window
        self.queue = verdict.queue
        self.detail = verdict.detail
        self.degradations = verdict.degradations
        self.rung = verdict.rung
        self.replica = verdict.replica
        self.pool = verdict.pool
        self.profile = verdict.profile
        return self

    @property
    def input_tokens(self) -> int | None:
        """Return the input tokens of all sequences together; None before they were counted."""
        return sum(self.prompt_tokens) * self.copies if self.prompt_tokens else None

    @property
    def sequences(self) -> int:
        """Return how many sequences the engine runs for this request; 0 before its prompts were counted."""
        return len(self.prompt_tokens) * self.copies

    def record(self) -> dict[str, Any]:
        """Return the line as a JSON object; docs/decision-log.md explains each field."""
        return {
            "schema": SCHEMA,
            "time": datetime.fromtimestamp(self.time_seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z",
            "time_seconds": self.time_seconds,
            "request_id": one_line(self.request_id, 128),
            "client_request_id": _short(self.client_request_id),
            "route": route_label(self.route),
            "tenant": _short(self.tenant),
            "model": None if self.reason is Reason.NOT_FOUND else _short(self.model),
            "pool": self.pool,
            "replica": self.replica,
            "profile": self.profile,
            "config_version": self.config_version,
            "thresholds_version": self.thresholds_version,
            "lane": self.lane,
            "intent": self.intent,
            "priority_class": self.priority_class,
            "streamed": self.streamed,
            "deadline_seconds": self.deadline_seconds,
            "first_token_seconds": self.first_token_seconds,
            "retry_count": self.retry_count,
            "arrival": self.arrival,
            "prompt_tokens": self.prompt_tokens,
            "copies": self.copies,
            "sequences": self.sequences,
            "input_tokens": self.input_tokens,
            "asked_output_tokens": self.asked_output_tokens,
            "output_ceiling_tokens": self.output_ceiling_tokens,
            "output_tokens": self.output_tokens,
            "reservation_tokens": self.reservation and self.reservation.total_tokens,
            "reservation": self.reservation and reservation_report(self.reservation),
            "equation": self.equation and equation_report(self.equation),
            "fits": self.equation.fits(self.reservation) if self.equation and self.reservation else None,
            "delay": self.delay and delay_report(self.delay),
            "window": self.window and window_report(self.window),
            "queue": self.queue and queue_report(self.queue),
            "detail": one_line(self.detail) or None,
            "decision": self.decision,
            "reason": self.reason,
            "would": self.would,
            "would_reason": self.would_reason,
            "status": self.status,
            "retry_after_seconds": self.retry_after_seconds,
            "fingerprint": self.fingerprint,
            "session": self.session,
            "continuing": self.continuing,
            "prefix_blocks": self.prefix_blocks,
            "degradations": self.degradations,
            "moved_from": self.moved_from,
            "rung": self.rung,
            "drill": self.drill,
            "estimated_queue_seconds": _microseconds(self.estimated_queue_seconds),
            **_rounded(self.waits),
            "ending": self.ending,
            "termination": self.termination,
        }


def _short(text: str | None) -> str | None:
    return None if text is None else one_line(text, 128)


def _rounded(waits: Waits) -> dict[str, float | None]:
    """Return the waits to the microsecond; finer digits are noise of the clock."""
    return {
        "counting_seconds": _microseconds(waits.counting_seconds),
        "queue_seconds": _microseconds(waits.queue_seconds),
        "connect_seconds": _microseconds(waits.connect_seconds),
        "ttft_seconds": _microseconds(waits.ttft_seconds),
        "tpot_seconds": _microseconds(waits.tpot_seconds),
        "total_seconds": _microseconds(waits.total_seconds),
    }


def _microseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


class DecisionLog:
    """Hands each decision to `sink` as one line of JSON, and remembers the last `history` of them.

    `sink` must not wait and must not raise: `writer.LineWriter.write` is made for it.
    """

    def __init__(self, sink: Callable[[bytes], None], history: int) -> None:
        self._sink = sink
        self._recent: deque[DecisionLine] = deque(maxlen=history)

    def write(self, decision: DecisionLine) -> None:
        """Remember the decision and write its line."""
        self._recent.append(decision)
        self._sink(orjson.dumps(decision.record(), option=orjson.OPT_APPEND_NEWLINE))

    def last(self, n: int) -> list[dict[str, Any]]:
        """Return the newest decisions as records, newest first: at most `n` of them and at most `MAX_LISTED`."""
        return [decision.record() for decision in islice(reversed(self._recent), min(max(n, 0), MAX_LISTED))]

    def find(self, request_id: str) -> list[dict[str, Any]]:
        """Return the decisions of that request id, newest first, as `last` does; none when none is remembered.

        A client may give one id to several requests.
        """
        found = (decision for decision in reversed(self._recent) if decision.request_id == request_id)
        return [decision.record() for decision in islice(found, MAX_LISTED)]

    def use_history(self, history: int) -> None:
        """Change how many decisions are remembered, keeping the newest."""
        self._recent = deque(self._recent, maxlen=history)
