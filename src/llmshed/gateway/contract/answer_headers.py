"""The headers of every answer: ids, lane, counts and times."""

from typing import NamedTuple

from llmshed.admission.verdict import Verdict
from llmshed.gateway.would import Would
from llmshed.observability.text import header_text

DEGRADED_HEADER = "x-llmshed-degraded"
NO_LANE = "none"
"""Lane told with answers to requests that were not classified."""


class Timings(NamedTuple):
    """What Server-Timing tells, in seconds.

    Args:
        counting_seconds: waiting for and running the token count.
        queue_seconds: waiting for admission.
        ttft_seconds: arrival to the first token; None for an answer in one piece, whose first token nobody sees, and
            for a stream that begins with an event without one.
        total_seconds: arrival to the end; None for a stream, whose end is not known yet.
    """

    counting_seconds: float = 0.0
    queue_seconds: float = 0.0
    ttft_seconds: float | None = None
    total_seconds: float | None = None

    def header(self) -> str:
        """Return `tok;dur=3.2, queue;dur=41.0, ttft;dur=236.5`, in milliseconds as that header is defined."""
        parts = {
            "tok": self.counting_seconds,
            "queue": self.queue_seconds,
            "ttft": self.ttft_seconds,
            "total": self.total_seconds,
        }
        return ", ".join(f"{name};dur={1000 * seconds:.1f}" for name, seconds in parts.items() if seconds is not None)


NO_TIMINGS = Timings()


def common_headers(
    request_id: str, lane: str | None = None, model: str | None = None, timings: Timings = NO_TIMINGS
) -> dict[str, str]:
    """Return the headers that every response carries, those of routes that admit nothing included.

    `request-id` repeats the id, since anthropic's client reads no other name.
    """
    request_id = header_text(request_id, 128)
    headers = {
        "x-request-id": request_id,
        "request-id": request_id,
        "x-llmshed-lane": str(lane or NO_LANE),
        "server-timing": timings.header(),
    }
    if model:
        headers["x-llmshed-model"] = header_text(model)
    return headers


def would_headers(would: Would) -> dict[str, str]:
    """Return what an answer tells of what would have become of its request."""
    return {"x-llmshed-would": would.word}


def answer_headers(
    request_id: str,
    verdict: Verdict,
    *,
    input_tokens: int | None,
    model: str | None = None,
    timings: Timings = NO_TIMINGS,
    streamed: bool = False,
    untruncated_tokens: int | None = None,
    would: Would | None = None,
) -> dict[str, str]:
    """Return the llmshed headers of a served answer; the engine's own content headers come beside them.

    Args:
        request_id: the id told to the client.
        verdict: the verdict that admitted it.
        input_tokens: input tokens of all its sequences together; None when it was let through uncounted.
        model: model that answers.
        timings: waits so far.
        streamed: adds `x-accel-buffering: no`, without which proxies hold events back.
        untruncated_tokens: count of the prompt before the engine's `truncate` cuts it; None without one.
        would: what would have become of a request that is only observed: no ceiling was then written on the wire, and
            nothing was reserved for one that would have been refused. None for one that was admitted.
    """
    headers = common_headers(request_id, verdict.lane, model, timings)
    if would is not None:
        headers |= would_headers(would)
    if input_tokens is not None:
        headers["x-llmshed-input-tokens"] = str(input_tokens)
    if verdict.reservation is not None and (would is None or would.reason is None):
        headers["x-llmshed-reserved-tokens"] = str(verdict.reservation.total_tokens)
    if verdict.output_ceiling_tokens is not None and would is None:
        headers["x-llmshed-output-ceiling"] = str(verdict.output_ceiling_tokens)
    if verdict.replica is not None:
        headers["x-llmshed-replica"] = header_text(verdict.replica)
    if verdict.profile is not None:
        headers["x-llmshed-profile"] = header_text(verdict.profile)
    if verdict.degradations and would is None:
        headers[DEGRADED_HEADER] = ",".join(verdict.degradations)
    if untruncated_tokens is not None:
        headers["x-llmshed-untruncated-tokens"] = str(untruncated_tokens)
    if streamed:
        headers["x-accel-buffering"] = "no"
    return headers
