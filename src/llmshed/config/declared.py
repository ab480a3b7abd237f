"""What an operator declares of a pool's replicas, since their engine does not tell it."""

from typing import Annotated

from pydantic import Field

from llmshed.config.base import Settings, Tokens

Word = Annotated[str, Field(min_length=1, max_length=256)]


class DeclaredFacts(Settings):
    """`[pools.declared]`: compared with the profile's fingerprint where the engine tells nothing; unset: unverified."""

    model_revision: Word | None = None
    """Commit of the model's repository."""
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
    max_batch_total_tokens: Tokens | None = None
    """Tokens that the engine's KV cache holds."""
    max_batch_prefill_tokens: Tokens | None = None
    """Most prompt tokens of one prefill step."""
