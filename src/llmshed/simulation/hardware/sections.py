"""The sections of a replica file."""

from typing import Annotated, Literal

from pydantic import Field

from llmshed.config.base import ACCEPTED, ModelName, Settings, Share

Count = Annotated[int, Field(ge=1, le=10**6)]
Bytes = Annotated[int, Field(ge=1, le=10**15)]
ValueBytes = Annotated[float, Field(ge=0.25, le=8)]
"""Bytes of one number: 2 for fp16 and bf16, 1 for fp8 and int8, 0.5 for 4 bits."""
Rate = Annotated[float, Field(ge=1, le=1e18)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
Duration = Annotated[float, Field(ge=0, le=10)]
StepDuration = Annotated[float, Field(ge=0.000_01, le=3600)]
Limit = Annotated[int, Field(ge=1, le=100_000_000)]
SequenceTokens = Annotated[int, Field(ge=2, le=100_000_000)]
"""Tokens of a sequence, which has one of its prompt and one of its output at least, or of the KV that holds it."""
VersionText = Annotated[
    str,
    Field(
        pattern=r"^[ -~]{1,32}$",
        json_schema_extra={ACCEPTED: 'the version of a release from 1.4.0 to 3.x, as in "3.3.5"'},
    ),
]
Label = Annotated[
    str,
    Field(
        pattern=r"^[ -~]{1,128}$",
        json_schema_extra={ACCEPTED: 'text of 1 to 128 printable ASCII characters, as in "NVIDIA A10G"'},
    ),
]


class Model(Settings):
    """`[model]`: the shape of the model, as its `config.json` tells it."""

    id: ModelName
    """Model id, told by the simulated replica as the model that it serves."""
    parameters: Annotated[int, Field(ge=1, le=10**14)]
    """Parameters, all tables included."""
    layers: Count
    """Layers (`num_hidden_layers`)."""
    hidden_size: Count
    """Width of a token between layers (`hidden_size`)."""
    attention_heads: Count
    """Attention heads (`num_attention_heads`)."""
    kv_heads: Count
    """Heads whose keys and values are kept (`num_key_value_heads`)."""
    head_size: Count
    """Width of one head (`head_dim`, else `hidden_size` by `num_attention_heads`)."""
    vocabulary_size: Count
    """Tokens that the model knows (`vocab_size`)."""
    tied_embeddings: bool = False
    """Whether input and output share one table (`tie_word_embeddings`)."""
    context_tokens: Annotated[int, Field(ge=2, le=10**12)]
    """Longest sequence that the model takes (`max_position_embeddings`)."""
    weight_bytes: ValueBytes = 2.0
    """Bytes of one weight."""
    kv_bytes: ValueBytes = 2.0
    """Bytes of one kept key or value element."""


class Gpu(Settings):
    """`[gpu]`: one GPU as its data sheet tells it, and how many share the model."""

    name: Label
    """Name of the GPU."""
    memory_bytes: Bytes
    """Memory of one GPU."""
    bandwidth_bytes_per_second: Rate
    """Memory bandwidth of one GPU."""
    flops_per_second: Rate
    """Dense operations a second of one GPU with the model's data type, without sparsity."""
    count: Annotated[int, Field(ge=1, le=1024)] = 1
    """GPUs that share the model (tensor parallel)."""
    link_bytes_per_second: Rate | None = None
    """Bandwidth of the link from one GPU to the others, in one direction; needed with a `count` above 1."""
    link_latency_seconds: Duration = 0.0
    """Fixed time of one all-reduce between the GPUs; two a layer."""


class Efficiency(Settings):
    """`[efficiency]`: what an engine reaches of what the data sheet promises."""

    flops_ratio: PositiveShare
    """Share of the operations a second that prefill reaches."""
    bandwidth_ratio: PositiveShare
    """Share of the bandwidth that reading weights and KV reaches."""
    memory_ratio: PositiveShare
    """Share of the memory that the engine takes for itself."""
    reserve_bytes: Annotated[int, Field(ge=0, le=10**15)]
    """Memory of that share for activations and the runtime, on each GPU."""
    step_seconds: StepDuration
    """Fixed time of a step: launches, scheduling."""
    sequence_seconds: Duration = 0.0
    """Time of the processor for each decoding sequence of a step: sampling, stop conditions, text."""


class Engine(Settings):
    """`[engine]`: which engine runs and its limits; what is absent is chosen as the engine itself does."""

    mode: Literal["tgi", "vllm"]
    """Whose scheduler is followed."""
    block_tokens: Annotated[int, Field(ge=1, le=4096)] | None = None
    """KV tokens of one block; absent: 16 for vLLM, for TGI what its attention kernels take."""
    prefix_caching: bool | None = None
    """Whether prompts that begin alike are computed once; absent: as the engine does by itself, TGI from 3.0."""
    chunked_prefill: bool | None = None
    """Whether prompts are computed in pieces; absent: as the engine does by itself, TGI from 3.0."""
    version: VersionText | None = None
    """TGI: version to follow, from 1.4.0 to 3.x; absent: 3.3.5."""
    max_concurrent_requests: Count | None = None
    """TGI: permits, sequences that wait and run together; absent: 128."""
    max_input_tokens: Limit | None = None
    """TGI: longest prompt; absent: one less than the longest sequence."""
    max_total_tokens: SequenceTokens | None = None
    """TGI: longest prompt and output of one sequence; absent: the model's context, or the KV cache if that is less."""
    max_batch_prefill_tokens: Limit | None = None
    """TGI: most tokens of a step; absent: those that one second of `flops_per_second` computes, at most the context."""
    max_batch_size: Count | None = None
    """TGI: most running sequences; absent: any number."""
    max_client_batch_size: Count | None = None
    """TGI: most prompts of one completions request; absent: 4."""
    max_best_of: Count | None = None
    """TGI: largest `best_of`; absent: 2."""
    max_stop_sequences: Count | None = None
    """TGI: most stop texts of one request; absent: 4."""
    max_waiting_steps: Count | None = None
    """TGI without chunked prefill: steps after which waiting requests join whatever their number; absent: 20."""
    attention: Literal["flashinfer", "flashdecoding", "flashdecoding-ipex", "paged"] | None = None
    """TGI: attention kernels; absent: flashinfer."""
    speculate: Annotated[int, Field(ge=0, le=64)] | None = None
    """TGI: tokens guessed ahead in a step; absent: 0."""
    accepted_tokens: Annotated[float, Field(ge=0, le=64)] | None = None
    """TGI: guesses of a step that prove right, in the mean; absent: 0."""
    max_num_seqs: Count | None = None
    """vLLM: most sequences that run; absent: 256, on large GPUs 1024."""
    max_num_batched_tokens: Limit | None = None
    """vLLM: most tokens of a step; absent: 2048, on large GPUs 8192."""
    max_model_len: SequenceTokens | None = None
    """vLLM: longest prompt and output of one sequence; absent: the model's context, or the KV cache if that is less."""
    watermark_ratio: Share | None = None
    """vLLM: share of the blocks that stay free when a sequence joins others; absent: 0."""
    long_prefill_token_threshold: Annotated[int, Field(ge=0, le=100_000_000)] | None = None
    """vLLM: most tokens of one prompt in one step; absent: 0, no bound of its own."""
    policy: Literal["fcfs", "priority"] | None = None
    """vLLM: order of service and of preemption; absent: fcfs."""
    scheduler_reserve_full_isl: bool | None = None
    """vLLM: whether a sequence joins only when all of its prompt has room; absent: true."""
    max_num_queued_reqs: Limit | None = None
    """vLLM: most unfinished sequences; absent: no limit."""
    max_num_queued_tokens: Limit | None = None
    """vLLM: most prompt tokens still without a first output token; absent: no limit."""


class Measured(Settings):
    """`[measured]`: what an operator measured, which takes the place of what is derived."""

    kv_tokens: SequenceTokens | None = None
    """Tokens of the KV cache, as the engine logs it."""
    step_seconds: StepDuration | None = None
    """Fixed part of a step."""
    seconds_per_prefill_token: Duration | None = None
    """Arithmetic of one prompt token."""
    seconds_per_decoding_sequence: Duration | None = None
    """Arithmetic of one sequence that decodes."""
    weights_seconds: Duration | None = None
    """Reading the weights, once a step."""
    seconds_per_attention_pair: Duration | None = None
    """Attention of one prompt token to one token before it."""
    seconds_per_resident_token: Duration | None = None
    """Reading one token in the KV of a decoding sequence."""
    seconds_per_sequence: Duration | None = None
    """Time of the processor for one decoding sequence."""
    seconds_per_linked_token: Duration | None = None
    """Time of one token on the link between GPUs."""
