"""Rules between the settings of a replica file."""

from collections.abc import Iterator

from llmshed.config.validation import Remark
from llmshed.simulation.hardware.derivation import body_parameters, table_parameters
from llmshed.simulation.hardware.engine import ONLY_TGI, ONLY_VLLM
from llmshed.simulation.hardware.sections import Engine, Gpu, Model
from llmshed.simulation.versions import parse_version


def shape_contradictions(model: Model) -> Iterator[Remark]:
    """Yield what no model can be."""
    if model.attention_heads % model.kv_heads:
        yield Remark(
            (("model", "kv_heads"), ("model", "attention_heads")),
            f"{model.kv_heads} does not divide `model.attention_heads`, {model.attention_heads}",
        )
    if body_parameters(model) <= 0:
        tables = "one embedding table" if model.tied_embeddings else "two embedding tables"
        yield Remark(
            (
                ("model", "parameters"),
                ("model", "vocabulary_size"),
                ("model", "hidden_size"),
                ("model", "tied_embeddings"),
            ),
            f"{model.parameters} leaves nothing beside {tables} of {table_parameters(model)}"
            " (`model.vocabulary_size` x `model.hidden_size`)",
        )


def parallel_contradictions(model: Model, gpu: Gpu) -> Iterator[Remark]:
    """Yield what keeps a model from being shared between GPUs as the file says."""
    count = ("gpu", "count")
    link = ("gpu", "link_bytes_per_second")
    if model.attention_heads % gpu.count:
        yield Remark(
            (count, ("model", "attention_heads")),
            f"{gpu.count} does not divide `model.attention_heads`, {model.attention_heads}",
        )
    if gpu.count > 1 and gpu.link_bytes_per_second is None:
        yield Remark((link, count), f"is missing; {gpu.count} GPUs need the bandwidth of the link between them")
    if gpu.count == 1 and gpu.link_bytes_per_second is not None:
        yield Remark((link, count), "is set, yet `gpu.count` is 1; remove it or say how many GPUs there are")
    if gpu.count == 1 and gpu.link_latency_seconds:
        yield Remark(
            (("gpu", "link_latency_seconds"), count),
            "is set, yet `gpu.count` is 1; remove it or say how many GPUs there are",
        )


def engine_contradictions(engine: Engine, model: Model) -> Iterator[Remark]:
    """Yield settings of the other engine, and limits beyond the model's."""
    foreign, owner = (ONLY_VLLM, "vllm") if engine.mode == "tgi" else (ONLY_TGI, "tgi")
    for name in foreign:
        if name in engine.model_fields_set:
            yield Remark(
                (("engine", name), ("engine", "mode")),
                f'is a setting of the mode "{owner}"; `engine.mode` is "{engine.mode}"',
            )
    if engine.version is not None:
        try:
            parse_version(engine.version)
        except ValueError as error:
            yield Remark((("engine", "version"),), str(error))
    for name, tokens in (("max_total_tokens", engine.max_total_tokens), ("max_model_len", engine.max_model_len)):
        if tokens is not None and tokens > model.context_tokens:
            yield Remark(
                (("engine", name), ("model", "context_tokens")),
                f"{tokens} is more than `model.context_tokens`, {model.context_tokens}",
            )
