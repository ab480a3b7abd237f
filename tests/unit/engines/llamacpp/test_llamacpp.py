"""llama.cpp's server as it answered: pages, streams and errors of a build of October 2026, shortened."""

import json
from typing import Any

import pytest

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.engines.base import Activity, EngineFailure, EngineInfo, StreamFacts, UpstreamFault
from llmshed.engines.registry import readable_engine
from llmshed.errors import EngineError

LLAMACPP = readable_engine("llamacpp")
PROPS = {
    "default_generation_settings": {"params": {"n_predict": -1, "stream": False}, "n_ctx": 1024},
    "total_slots": 4,
    "model_alias": "tiny",
    "model_path": "models/tiny.gguf",
    "endpoint_metrics": True,
    "build_info": "b11434-0c2bd5c5",
}
MODELS = {
    "models": [{"name": "tiny", "model": "tiny", "type": "model"}],
    "object": "list",
    "data": [{"id": "tiny", "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx": 1024, "n_ctx_train": 4096}}],
}
METRICS = b"""\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed, excluding cached tokens
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 40
# TYPE llamacpp:prompt_tokens_cached_total counter
llamacpp:prompt_tokens_cached_total 7
# TYPE llamacpp:prompt_seconds_total counter
llamacpp:prompt_seconds_total 0.006038
# TYPE llamacpp:prompt_tokens_seconds gauge
llamacpp:prompt_tokens_seconds 6624.71
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 4
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 3
# TYPE llamacpp:n_busy_slots_per_decode gauge
llamacpp:n_busy_slots_per_decode 3.98387
"""
TOKEN = (
    b'data: {"index":0,"content":" bound","tokens":[784],"stop":false,"id_slot":-1,"tokens_predicted":%d,'
    b'"tokens_evaluated":10}\n\n'
)
LAST = (
    b'data: {"index":0,"content":"","tokens":[],"id_slot":3,"stop":true,"model":"tiny","tokens_predicted":3,'
    b'"tokens_evaluated":9,"truncated":false,"stop_type":"limit","timings":{"prompt_n":9,"predicted_n":3}}\n\n'
)


def pages(props: Any = PROPS, models: Any = MODELS) -> dict[str, bytes]:
    return {"/props": json.dumps(props).encode(), "/v1/models": json.dumps(models).encode()}


def test_slots_and_their_context_are_the_limits() -> None:
    assert LLAMACPP.read_description(pages()) == EngineInfo(
        "tiny", "b11434-0c2bd5c5", max_total_tokens=1024, max_batch_total_tokens=4096, max_running_sequences=4
    )


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"/v1/models": b"{}"}, "/props: there is no such page"),
        (pages(props={**PROPS, "total_slots": 0}), "/props: `total_slots` should be a whole number above 0"),
        (
            pages(props={"model_id": "m"}),
            "/props: `build_info` should be a string, but it is missing; told: `model_id`",
        ),
        (
            pages(props={**PROPS, "default_generation_settings": {}}),
            "/props: `n_ctx` should be a whole number above 0, but it is missing; told: nothing",
        ),
        (pages(models={"data": []}), "/v1/models: `data` should be a list of models, but it is a list"),
        (pages(models={"data": [7]}), "/v1/models: the answer is not a JSON object"),
        ({"/props": b"Not Found", "/v1/models": b"{}"}, "/props: the answer is not a JSON object"),
    ],
)
def test_another_server_is_told_by_what_came(told: dict[str, bytes], problem: str) -> None:
    with pytest.raises(EngineError) as caught:
        LLAMACPP.read_description(told)
    assert str(caught.value).startswith(problem)


def test_the_queue_is_told_and_the_cache_is_not() -> None:
    assert LLAMACPP.read_metrics(METRICS, 4096, 5.0) == ReplicaReading(5.0, queued_requests=3.0)
    assert LLAMACPP.read_metrics(b'{"error":{"code":501}}', 4096, 5.0) == ReplicaReading(5.0)


def test_prompts_count_whether_they_were_cached_or_not() -> None:
    assert LLAMACPP.read_activity(METRICS) == Activity(4.0, 3.0, 47.0)
    assert LLAMACPP.read_activity(b"llamacpp:prompt_tokens_total 40\n") == Activity(None, None, 40.0)
    assert LLAMACPP.read_activity(b"") == Activity()


def test_a_text_is_completed_past_its_end_when_it_should_run_to_its_ceiling() -> None:
    request = LLAMACPP.text_request("some text", 40, runs_to_ceiling=True, model="tiny")
    assert request.path == "/completion"
    assert json.loads(request.body) == {"prompt": "some text", "n_predict": 40, "ignore_eos": True, "stream": True}


def test_a_stream_tells_its_tokens_as_they_come() -> None:
    reader = LLAMACPP.text_reader()
    for number in (1, 2, 3):
        reader.feed(TOKEN % number)
        assert reader.facts.output_tokens == number
    reader.feed(LAST)
    reader.end()
    assert reader.facts == StreamFacts(data_events=4, output_tokens=3, complete=True, finish_reason="limit")


def test_a_stream_that_breaks_off_is_not_complete() -> None:
    reader = LLAMACPP.text_reader()
    reader.feed(TOKEN % 1)
    reader.end()
    assert not reader.facts.complete


def test_an_error_in_a_stream_is_its_failure() -> None:
    reader = LLAMACPP.text_reader()
    reader.feed(b'data: {"error":{"code":500,"message":"context full","type":"server_error"}}\n\n')
    reader.feed(LAST)
    assert not reader.facts.complete
    assert reader.facts.failure == EngineFailure(UpstreamFault.ENGINE, 500, "context full", "server_error")


def test_a_prompt_that_is_too_long_is_the_requests_own_fault() -> None:
    body = (
        b'{"error":{"code":400,"message":"request (5401 tokens) exceeds the available context size (1024 tokens), try '
        b'increasing it","type":"exceed_context_size_error","n_prompt_tokens":5401,"n_ctx":1024}}'
    )
    failure = LLAMACPP.read_failure(400, body)
    assert (failure.fault, failure.error_type) == (UpstreamFault.CLIENT, "exceed_context_size_error")


def test_a_model_that_is_loading_is_not_busy() -> None:
    body = b'{"error":{"message":"Loading model","type":"unavailable_error","code":503}}'
    assert LLAMACPP.read_failure(503, body).fault is UpstreamFault.ENGINE


def test_a_text_is_counted_by_its_tokens() -> None:
    request = LLAMACPP.count_request("hello", model="tiny")
    assert request.path == "/tokenize"
    assert json.loads(request.body) == {"content": "hello", "add_special": True, "parse_special": True}
    assert LLAMACPP.read_text_count(b'{"tokens":[263,78,501,281]}') == 4


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"tokens":4}', b"<html>"])
def test_an_answer_without_tokens_is_no_count(body: bytes) -> None:
    with pytest.raises(EngineError, match=r"^/tokenize: the answer holds no list of tokens$"):
        LLAMACPP.read_text_count(body)
