"""What a profile was measured on. Unknown is neither a match nor a mismatch, so every field may be absent."""

import datetime as dt
from typing import Annotated

from pydantic import Field

from llmshed.config.base import ACCEPTED, Seconds, Settings, Tokens

Word = Annotated[str, Field(min_length=1, max_length=256)]
Sha256 = Annotated[
    str,
    Field(pattern=r"^[0-9a-f]{64}$", json_schema_extra={ACCEPTED: "a SHA-256 digest, 64 digits of 0-9 and a-f"}),
]


class EngineLimits(Settings):
    """`[fingerprint.limits]`: the launcher's limits in force during the measurement; absent: not recorded."""

    max_input_tokens: Tokens | None = None
    """Most input tokens of one request."""
    max_total_tokens: Tokens | None = None
    """Most input and output tokens of one request."""
    max_batch_total_tokens: Tokens | None = None
    """Tokens that the engine's KV cache holds."""
    max_batch_prefill_tokens: Tokens | None = None
    """Most prompt tokens of one prefill step."""
    max_concurrent_requests: Annotated[int, Field(ge=1, le=10**6)] | None = None
    """The engine's own permits."""


class Behaviour(Settings):
    """`[fingerprint.behaviour]`: how the replica moved when it was idle; absent: not measured."""

    fixed_prompt_tokens: Tokens | None = None
    """Length of the fixed prompt that `calibrate` sends."""
    fixed_prompt_prefill_seconds: Seconds | None = None
    """Time to its first token."""
    decode_step_seconds: Seconds | None = None
    """Time of one decode step with one sequence."""


class Fingerprint(Settings):
    """`[fingerprint]`: model, engine, hardware and workload; an absent field is unverified."""

    model_id: Word | None = None
    """Model id, as the engine tells it."""
    model_revision: Word | None = None
    """Commit of the model's repository."""
    engine: Word | None = None
    """Engine; absent also means that no overrun of ceilings is assumed."""
    engine_version: Word | None = None
    """Version of the engine."""
    dtype: Word | None = None
    """Type of the weights, as in `float16`."""
    quantization: Word | None = None
    """Quantisation of the weights, or `none`."""
    parallelism: Word | None = None
    """How the model is split, as in `tp=2`."""
    gpu: Word | None = None
    """Model of the GPU."""
    gpu_count: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """GPUs of one replica."""
    tokenizer_sha256: Sha256 | None = None
    """Digest of tokenizer.json."""
    template_sha256: Sha256 | None = None
    """Digest of the chat template."""
    limits: EngineLimits = EngineLimits()
    """The launcher's limits."""
    date: dt.date | None = None
    """Day of the measurement."""
    workload: Word | None = None
    """What was sent, as in `sharegpt-2023, 512/256`."""
    behaviour: Behaviour = Behaviour()
    """How the idle replica moved."""
