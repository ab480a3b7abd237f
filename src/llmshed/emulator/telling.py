"""What all routes tell of a finished sequence: tokens, times, headers, metrics."""

from dataclasses import dataclass
from typing import Any

from llmshed.emulator.decimals import decimal_text
from llmshed.emulator.infer import OutputToken, Run
from llmshed.emulator.replica import Replica
from llmshed.emulator.vocabulary import Piece
from llmshed.simulation.results import Ended
from llmshed.simulation.sequences import FinishReason

COMPUTE_TYPE = "gpu+optimized"
"""TGI's default; a real replica may name its GPU."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Durations of one sequence, in seconds; they add up to the total."""

    total: float
    validation: float
    queue: float
    inference: float
    per_token: float


def timings(run: Run, ended: Ended, now: float) -> Timings:
    """Return the durations of a sequence that ended, as of `now`."""
    inference = now - ended.started_at
    return Timings(
        total=now - run.began_at,
        validation=ended.queued_at - run.began_at,
        queue=ended.started_at - ended.queued_at,
        inference=inference,
        per_token=inference / ended.output_tokens,
    )


def record_success(replica: Replica, times: Timings, ended: Ended) -> None:
    """Count a finished sequence in the metrics."""
    metrics = replica.metrics
    metrics.count("tgi_request_success")
    metrics.observe("tgi_request_duration", times.total)
    metrics.observe("tgi_request_validation_duration", times.validation)
    metrics.observe("tgi_request_queue_duration", times.queue)
    metrics.observe("tgi_request_inference_duration", times.inference)
    metrics.observe("tgi_request_mean_time_per_token_duration", times.per_token)
    metrics.observe("tgi_request_generated_tokens", ended.output_tokens)


def stream_headers(inputs: str) -> dict[str, str]:
    """Return the headers of a stream over one text."""
    return {
        "x-compute-type": COMPUTE_TYPE,
        "x-compute-characters": str(len(inputs)),
        "x-accel-buffering": "no",
    }


def answer_headers(run: Run, times: Timings, ended: Ended) -> dict[str, str]:
    """Return the headers of a whole answer; all times in whole milliseconds but `x-compute-time`."""
    return {
        "x-compute-type": COMPUTE_TYPE,
        "x-compute-time": decimal_text(times.total),
        "x-compute-characters": str(len(run.ask.inputs)),
        "x-total-time": _milliseconds(times.total),
        "x-validation-time": _milliseconds(times.validation),
        "x-queue-time": _milliseconds(times.queue),
        "x-inference-time": _milliseconds(times.inference),
        "x-time-per-token": _milliseconds(times.per_token),
        "x-prompt-tokens": str(run.input_tokens),
        "x-generated-tokens": str(ended.output_tokens),
    }


def token_json(piece: Piece, logprob: float) -> dict[str, Any]:
    """Return a token as the native routes tell it."""
    return {"id": piece.token_id, "text": piece.text, "logprob": logprob, "special": piece.special}


def tokens_json(token: OutputToken) -> list[dict[str, Any]]:
    """Return the most likely tokens at one place, as many as were asked for."""
    return [token_json(piece, logprob) for piece, logprob in token.top]


def logprobs_json(tokens: list[OutputToken]) -> dict[str, Any]:
    """Return the log probabilities of chat tokens."""
    return {
        "content": [
            {
                "token": token.piece.text,
                "logprob": token.logprob,
                "top_logprobs": [{"token": piece.text, "logprob": logprob} for piece, logprob in token.top],
            }
            for token in tokens
        ]
    }


def usage_json(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """Return OpenAI's usage; an end token counts as completion."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


def openai_reason(replica: Replica, reason: FinishReason) -> str:
    """Return the finish reason of chat answers and whole completions: `stop` for an end token, else TGI's word."""
    return "stop" if reason is FinishReason.EOS and replica.wire.eos_is_stop else reason.value


def _milliseconds(seconds: float) -> str:
    return str(int(seconds * 1000))
