"""What versions tell on the wire, against the sources at their tags."""

import pytest

from llmshed.emulator.wire import StreamErrors, UsageForm, info, wire_rules
from llmshed.simulation.parameters import ReplicaParameters

NEW = [
    "model_id",
    "model_sha",
    "model_pipeline_tag",
    "max_concurrent_requests",
    "max_best_of",
    "max_stop_sequences",
    "max_input_tokens",
    "max_total_tokens",
    "validation_workers",
    "max_client_batch_size",
    "router",
    "version",
    "sha",
    "docker_label",
]
OLD = [
    "model_id",
    "model_sha",
    "model_dtype",
    "model_device_type",
    "model_pipeline_tag",
    "max_concurrent_requests",
    "max_best_of",
    "max_stop_sequences",
    "max_input_length",
    "max_total_tokens",
    "waiting_served_ratio",
    "max_batch_total_tokens",
    "max_waiting_tokens",
    "max_batch_size",
    "validation_workers",
    "version",
    "sha",
    "docker_label",
]


@pytest.mark.parametrize(
    ("version", "fields"), [("1.4.5", OLD), ("2.4.0", NEW), ("3.0.1", NEW), ("3.3.5", NEW), ("3.3.6-dev0", NEW)]
)
def test_info_has_the_fields_of_its_version_in_their_order(version: str, fields: list[str]) -> None:
    parameters = ReplicaParameters(version=version, max_batch_prefill_tokens=8192)
    told = info(parameters, "some/model")
    assert list(told) == fields
    assert told["version"] == version
    assert told["model_id"] == "some/model"


def test_info_of_the_newest_version_is_as_the_reference_shows_it() -> None:
    assert info(ReplicaParameters(), "meta-llama/x") == {
        "model_id": "meta-llama/x",
        "model_sha": None,
        "model_pipeline_tag": None,
        "max_concurrent_requests": 128,
        "max_best_of": 2,
        "max_stop_sequences": 4,
        "max_input_tokens": 8191,
        "max_total_tokens": 8192,
        "validation_workers": 2,
        "max_client_batch_size": 4,
        "router": "text-generation-router",
        "version": "3.3.5",
        "sha": None,
        "docker_label": None,
    }


@pytest.mark.parametrize(
    ("version", "data_field", "done", "usage", "errors"),
    [
        ("1.4.5", b"data:", False, UsageForm.NEVER, StreamErrors.NATIVE),
        ("2.4.0", b"data: ", True, UsageForm.IN_LAST_CHUNK, StreamErrors.NATIVE),
        ("2.4.1", b"data: ", True, UsageForm.IN_LAST_CHUNK, StreamErrors.OPENAI),
        ("3.1.1", b"data: ", True, UsageForm.IN_LAST_CHUNK, StreamErrors.OPENAI),
        ("3.2.0", b"data: ", True, UsageForm.OWN_CHUNK, StreamErrors.OPENAI),
        ("3.3.5", b"data: ", True, UsageForm.OWN_CHUNK, StreamErrors.OPENAI),
    ],
)
def test_streams_differ_as_the_tags_do(
    version: str,
    data_field: bytes,
    *,
    done: bool,
    usage: UsageForm,
    errors: StreamErrors,
) -> None:
    rules = wire_rules(version)
    assert (rules.data_field, rules.done, rules.usage, rules.stream_errors) == (data_field, done, usage, errors)


def test_only_one_version_drops_the_errors_of_chat_streams() -> None:
    dropping = [
        version for version in ("1.4.5", "2.3.1", "2.4.0", "2.4.1", "3.3.5") if wire_rules(version).drops_chat_errors
    ]
    assert dropping == ["2.4.0"]


@pytest.mark.parametrize(
    ("rule", "before", "since"),
    [
        ("vertex_chats", "2.2.0", "2.3.0"),
        ("invocations_by_form", "2.3.1", "2.4.0"),
        ("takes_max_completion_tokens", "3.0.1", "3.0.2"),
        ("names_requested_model", "2.4.1", "3.0.0"),
        ("tells_models", "2.2.0", "2.3.0"),
        ("prompt_lists", "2.0.0", "2.0.1"),
        ("done", "2.1.1", "2.2.0"),
    ],
)
def test_what_came_with_a_version_was_not_there_before(rule: str, before: str, since: str) -> None:
    assert (getattr(wire_rules(before), rule), getattr(wire_rules(since), rule)) == (False, True)


def test_the_body_limit_the_prompt_s_tokens_and_the_word_for_no_end_changed_too() -> None:
    assert (wire_rules("2.4.0").payload_limit_bytes, wire_rules("2.4.1").payload_limit_bytes) == (2_097_152, 2_000_000)
    assert (wire_rules("2.4.1").prefill_details, wire_rules("3.0.0").prefill_details) == (True, False)
    assert wire_rules("2.2.0").incomplete_stream == ("Incomplete generation", "incomplete_generation")
    assert wire_rules("2.3.0").incomplete_stream == ("Incomplete generation stream", "incomplete_generation_stream")


@pytest.mark.parametrize(
    ("version", "last"),
    [
        ("2.0.0", ["validation_workers", "version", "sha", "docker_label"]),
        ("2.0.1", ["validation_workers", "max_client_batch_size", "version", "sha", "docker_label"]),
        ("2.0.3", ["validation_workers", "max_client_batch_size", "router", "version", "sha", "docker_label"]),
    ],
)
def test_info_learnt_its_last_fields_one_after_the_other(version: str, last: list[str]) -> None:
    told = list(info(ReplicaParameters(version=version, max_batch_prefill_tokens=8192), "m"))
    assert told[told.index("validation_workers") :] == last
