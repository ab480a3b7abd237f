"""What the versions of TGI do differently on the wire, read from the tags v1.4.5 to v3.3.5."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.versions import parse_version


class UsageForm(Enum):
    """Where a chat stream tells its usage when asked to."""

    NEVER = "never"
    IN_LAST_CHUNK = "in_last_chunk"
    OWN_CHUNK = "own_chunk"


class StreamErrors(Enum):
    """How an OpenAI stream tells an error."""

    NATIVE = "native"
    OPENAI = "openai"


@dataclass(frozen=True, slots=True)
class WireRules:
    """Forms of one version.

    Args:
        data_field: bytes before each event's JSON; axum 0.6 wrote no space.
        done: whether OpenAI streams end with `[DONE]`.
        usage: where a chat stream tells usage.
        stream_errors: form of errors in OpenAI streams.
        drops_chat_errors: whether a chat stream swallows errors and just ends (v2.4.0).
        input_length_in_details: whether the last native event tells the input length.
        completion_usage: whether the last chunk of a completions stream tells finish reason and usage.
        eos_is_stop: whether OpenAI answers call an end token `stop`.
        names_requested_model: whether chat answers repeat the model that was asked for.
        takes_max_completion_tokens: whether the chat route knows OpenAI's newer name.
        tells_models: whether `/v1/models` and `/chat_tokenize` exist.
        prompt_lists: whether `/v1/completions` takes several prompts.
        vertex_chats: whether `/vertex` takes chats beside native instances.
        invocations_by_form: whether `/invocations` takes whatever body it can read; before, native ones only.
        payload_limit_bytes: longest body; before `--payload-limit` came, that of the HTTP library.
        prefill_details: whether `decoder_input_details` tells the prompt's tokens; from 3.0 on the launcher has to be
            told so, and is not here.
        incomplete_stream: text and kind of the error of a stream that stopped without an end.
    """

    data_field: bytes
    done: bool
    usage: UsageForm
    stream_errors: StreamErrors
    drops_chat_errors: bool
    input_length_in_details: bool
    completion_usage: bool
    eos_is_stop: bool
    names_requested_model: bool
    takes_max_completion_tokens: bool
    tells_models: bool
    prompt_lists: bool
    vertex_chats: bool
    invocations_by_form: bool
    payload_limit_bytes: int
    prefill_details: bool
    incomplete_stream: tuple[str, str]


def wire_rules(version: str) -> WireRules:
    """Return the forms of a version.

    Raises:
        ValueError: as `parse_version`.
    """
    number = parse_version(version)
    return WireRules(
        data_field=b"data:" if number < (2, 1, 0) else b"data: ",
        done=number >= (2, 2, 0),
        usage=_usage(number),
        stream_errors=StreamErrors.NATIVE if number < (2, 4, 1) else StreamErrors.OPENAI,
        drops_chat_errors=number == (2, 4, 0),
        input_length_in_details=number >= (2, 3, 0),
        completion_usage=number >= (2, 3, 0),
        eos_is_stop=number >= (2, 3, 0),
        names_requested_model=number >= (3, 0, 0),
        takes_max_completion_tokens=number >= (3, 0, 2),
        tells_models=number >= (2, 3, 0),
        prompt_lists=number >= (2, 0, 1),
        vertex_chats=number >= (2, 3, 0),
        invocations_by_form=number >= (2, 4, 0),
        payload_limit_bytes=2_097_152 if number < (2, 4, 1) else 2_000_000,
        prefill_details=number < (3, 0, 0),
        incomplete_stream=(
            ("Incomplete generation", "incomplete_generation")
            if number < (2, 3, 0)
            else ("Incomplete generation stream", "incomplete_generation_stream")
        ),
    )


def info(parameters: ReplicaParameters, model_id: str) -> Mapping[str, Any]:
    """Return `/info` of the replica's version, in its field order."""
    number = parse_version(parameters.version)
    told: dict[str, Any] = {"model_id": model_id, "model_sha": None}
    if number < (2, 3, 0):
        told |= {"model_dtype": "torch.float16", "model_device_type": "cuda"}
    told |= {
        "model_pipeline_tag": None,
        "max_concurrent_requests": parameters.max_concurrent_requests,
        "max_best_of": parameters.max_best_of,
        "max_stop_sequences": parameters.max_stop_sequences,
        "max_input_length" if number < (2, 1, 0) else "max_input_tokens": parameters.max_input_tokens,
        "max_total_tokens": parameters.max_total_tokens,
    }
    if number < (2, 3, 0):
        told |= {
            "waiting_served_ratio": parameters.rules.waiting_served_ratio,
            "max_batch_total_tokens": parameters.kv_tokens,
            "max_waiting_tokens": parameters.max_waiting_steps,
            "max_batch_size": None,
        }
    told["validation_workers"] = 2
    if number >= (2, 0, 1):
        told["max_client_batch_size"] = parameters.max_client_batch_size
    if number >= (2, 0, 3):
        told["router"] = "text-generation-router"
    return told | {"version": parameters.version, "sha": None, "docker_label": None}


def _usage(number: tuple[int, int, int]) -> UsageForm:
    if number < (2, 3, 0):
        return UsageForm.NEVER
    return UsageForm.IN_LAST_CHUNK if number < (3, 2, 0) else UsageForm.OWN_CHUNK
