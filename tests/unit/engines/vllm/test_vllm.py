"""vLLM as it tells of itself: scrapes of several versions, shortened, and streams of 0.32."""

import json
from pathlib import Path
from typing import Any

import pytest

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.engines.base import Activity, EngineFailure, EngineInfo, StreamFacts, UpstreamFault
from llmshed.engines.registry import readable_engine
from llmshed.errors import EngineError

VLLM = readable_engine("vllm")
MODELS = {
    "object": "list",
    "data": [
        {"id": "sql-adapter", "owned_by": "vllm", "root": "/adapters/sql", "parent": "tiny", "max_model_len": None},
        {"id": "tiny", "owned_by": "vllm", "root": "/models/tiny", "parent": None, "max_model_len": 2048},
    ],
}
# github.com/vllm-project/aibrix, docs/source/features/runtime.rst: an idle vLLM of about 0.7
V0 = b"""\
# HELP vllm:cache_config_info information of cache_config
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",cache_dtype="auto",cpu_offload_gb="0",enable_prefix_caching="False",\
gpu_memory_utilization="0.9",num_cpu_blocks="9362",num_gpu_blocks="81767",num_gpu_blocks_override="None"} 1.0
# HELP vllm:num_requests_running Number of requests currently running on GPU.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="Qwen/Qwen2.5-Coder-1.5B-Instruct"} 0.0
vllm:num_requests_swapped{model_name="Qwen/Qwen2.5-Coder-1.5B-Instruct"} 0.0
vllm:num_requests_waiting{model_name="Qwen/Qwen2.5-Coder-1.5B-Instruct"} 0.0
vllm:gpu_cache_usage_perc{model_name="Qwen/Qwen2.5-Coder-1.5B-Instruct"} 0.0
vllm:cpu_cache_usage_perc{model_name="Qwen/Qwen2.5-Coder-1.5B-Instruct"} 0.0
vllm:num_preemptions_total{model_name="Qwen/Qwen2.5-Coder-1.5B-Instruct"} 0.0
vllm:prompt_tokens_total{model_name="Qwen/Qwen2.5-Coder-1.5B-Instruct"} 148.0
"""
# of a vLLM 0.32.0 with 1 GiB for its cache on a CPU, which tells some thirty labels
V0_32 = b"""\
vllm:num_requests_running{engine="0",model_name="tiny"} 0.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="deferred"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.0
vllm:num_preemptions_total{engine="0",model_name="tiny"} 0.0
vllm:num_preemptions_created{engine="0",model_name="tiny"} 1.79609581993172e+09
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 11.0
vllm:cache_config_info{_block_size_resolved="True",block_size="128",cache_dtype="auto",cache_hit_alignment_tokens=\
"None",enable_prefix_caching="True",engine="0",gpu_memory_utilization="0.92",kv_cache_dtype_skip_layers="[]",\
kv_cache_max_concurrency="512.0",kv_cache_memory_bytes="1073741824",kv_cache_size_tokens="1048576"} 1.0
"""
V1 = b"""\
vllm:num_requests_running{engine="0",model_name="tiny"} 4.0
vllm:num_requests_running{engine="1",model_name="tiny"} 3.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 2.0
vllm:num_requests_waiting{engine="1",model_name="tiny"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.25
vllm:num_preemptions_total{engine="0",model_name="tiny"} 16.0
vllm:num_preemptions_created{engine="0",model_name="tiny"} 1.79609e+09
vllm:num_preemptions_total{engine="1",model_name="tiny"} 1.0
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 1200.0
vllm:prompt_tokens_total{engine="1",model_name="tiny"} 300.0
vllm:cache_config_info{block_size="16",engine="0",kv_cache_size_tokens="16000",num_gpu_blocks="1024"} 1.0
vllm:cache_config_info{block_size="16",engine="1",kv_cache_size_tokens="None",num_gpu_blocks="1000"} 1.0
"""


def pages(metrics: bytes, models: Any = MODELS) -> dict[str, bytes]:
    return {"/version": b'{"version":"0.32.0"}', "/v1/models": json.dumps(models).encode(), "/metrics": metrics}


@pytest.mark.parametrize(
    ("metrics", "kv_tokens"),
    [
        (V0, 81_767 * 16),
        (V0_32, 1_048_576),
        (V1, 16_000 + 16_000),
        (V0.replace(b'num_gpu_blocks="81767"', b'num_gpu_blocks="None"'), None),
        (V1.replace(b'num_gpu_blocks="1000"', b'num_gpu_blocks="None"'), None),
        (b"", None),
    ],
)
def test_model_length_and_cache_are_the_limits(metrics: bytes, kv_tokens: int | None) -> None:
    info = EngineInfo("tiny", "0.32.0", max_total_tokens=2048, max_batch_total_tokens=kv_tokens)
    assert VLLM.read_description(pages(metrics)) == info


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"/v1/models": b"{}"}, "/version: there is no such page"),
        ({"/version": b'{"version":"0.32.0"}'}, "/v1/models: there is no such page"),
        (pages(V1, {"data": []}), "/v1/models: `data` should be a list of models, but it is a list"),
        (
            pages(V1, {"data": [{"id": "tiny", "owned_by": "sglang"}]}),
            "/v1/models: `owned_by` should be `vllm`, but it is a str. Is a vLLM server at this address?",
        ),
        (pages(V1, {"data": [{"owned_by": "vllm"}]}), "/v1/models: `id` should be a string, but it is missing"),
        (pages(V1, {"data": ["tiny"]}), "/v1/models: the answer is not a JSON object"),
    ],
)
def test_another_server_is_told_by_what_came(told: dict[str, bytes], problem: str) -> None:
    with pytest.raises(EngineError) as caught:
        VLLM.read_description(told)
    assert str(caught.value).startswith(problem)


def test_old_and_new_names_of_the_same_signals_are_read() -> None:
    assert VLLM.read_metrics(V0, None, 5.0) == ReplicaReading(5.0, 0.0, 0.0, 0.0)
    assert VLLM.read_metrics(V1, None, 5.0) == ReplicaReading(5.0, 2.0, 0.375, 17.0)
    assert VLLM.read_metrics(b"", None, 5.0) == ReplicaReading(5.0)


def test_a_whole_page_is_read_as_its_lines(data_dir: Path) -> None:
    page = (data_dir / "metrics" / "vllm_v0_idle.prom").read_bytes()
    assert VLLM.read_metrics(page, None, 5.0) == ReplicaReading(5.0, 0.0, 0.0, 0.0)
    assert VLLM.read_activity(page) == Activity(0.0, 0.0, 148.0)
    assert VLLM.read_description(pages(page)).max_batch_total_tokens == 81_767 * 16
    excerpt = (data_dir / "metrics" / "vllm_v1_docs_excerpt.prom").read_bytes()
    assert VLLM.read_activity(excerpt) == Activity(8.0)


def test_sequences_that_were_swapped_out_wait_again() -> None:
    page = V0.replace(b'Instruct"} 0.0', b'Instruct"} 2.0')
    assert VLLM.read_metrics(page, None, 5.0).queued_requests == 4.0


def test_of_two_answers_for_one_engine_neither_is_believed() -> None:
    page = b'vllm:num_requests_waiting{engine="0"} 2\nvllm:num_requests_waiting{engine="0"} 900\n'
    assert not VLLM.read_metrics(page, None, 5.0).tells


def test_activity_is_summed_over_the_engines() -> None:
    assert VLLM.read_activity(V0) == Activity(0.0, 0.0, 148.0)
    assert VLLM.read_activity(V0_32) == Activity(0.0, 0.0, 11.0)
    assert VLLM.read_activity(V1) == Activity(7.0, 2.0, 1500.0)
    assert VLLM.read_activity(b"") == Activity()


def test_a_text_is_completed_with_its_usage_in_each_event() -> None:
    request = VLLM.text_request("some text", 40, runs_to_ceiling=True, model="tiny")
    assert request.path == "/v1/completions"
    assert json.loads(request.body) == {
        "model": "tiny",
        "prompt": "some text",
        "max_tokens": 40,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }


def chunk(tokens: int | None, finish: str | None = None) -> bytes:
    usage = {"prompt_tokens": 9, "completion_tokens": tokens} if tokens is not None else None
    choice = {"index": 0, "text": " a", "logprobs": None, "finish_reason": finish, "stop_reason": None}
    event = {"id": "cmpl-1", "object": "text_completion", "model": "tiny", "choices": [choice], "usage": usage}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
TOTAL = b'data: {"id":"cmpl-1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5}}\n\n'


def test_an_event_may_hold_several_tokens() -> None:
    reader = VLLM.text_reader()
    seen = []
    for piece in (chunk(1), chunk(3), chunk(5, "length"), TOTAL, DONE):
        reader.feed(piece)
        seen.append(reader.facts.output_tokens)
    reader.end()
    assert seen == [1, 3, 5, 5, 5]
    assert reader.facts == StreamFacts(data_events=5, output_tokens=5, complete=True, finish_reason="length")


def test_without_a_usage_each_choice_is_a_token() -> None:
    reader = VLLM.text_reader()
    for piece in (chunk(None), chunk(None), chunk(None, "stop"), DONE):
        reader.feed(piece)
    assert (reader.facts.output_tokens, reader.facts.complete) == (3, True)


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_a_sequence_that_the_engine_gave_up_failed(reason: str) -> None:
    reader = VLLM.text_reader()
    for piece in (chunk(1), chunk(2, reason), DONE):
        reader.feed(piece)
    reader.end()
    assert not reader.facts.complete
    assert reader.facts.failure is not None
    assert reader.facts.failure.fault is UpstreamFault.ENGINE


BUSY = "The engine is currently busy and cannot accept new requests. Please try again later."


def test_a_full_queue_is_told_by_its_status_or_inside_a_stream() -> None:
    body = {"error": {"message": BUSY, "type": "Service Unavailable", "param": None, "code": 503}}
    failure = EngineFailure(UpstreamFault.BUSY, 503, BUSY, "Service Unavailable")
    assert VLLM.read_failure(503, json.dumps(body).encode()) == failure
    reader = VLLM.text_reader()
    reader.feed(b"data: " + json.dumps(body).encode() + b"\n\n" + DONE)
    reader.end()
    assert reader.facts == StreamFacts(data_events=2, failure=failure)


def test_an_engine_that_died_is_not_busy() -> None:
    body = b'{"error":{"message":"EngineCore encountered an issue.","type":"Service Unavailable","code":503}}'
    assert VLLM.read_failure(503, body).fault is UpstreamFault.ENGINE


def test_a_text_is_counted_by_the_engines_own_count() -> None:
    request = VLLM.count_request("hello", model="tiny")
    assert (request.path, json.loads(request.body)) == ("/tokenize", {"model": "tiny", "prompt": "hello"})
    assert VLLM.read_text_count(b'{"count":4,"max_model_len":2048,"tokens":[1,2,3,4]}') == 4


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"count":"4"}', b'{"count":-1}', b"<html>"])
def test_an_answer_without_a_count_is_none(body: bytes) -> None:
    with pytest.raises(EngineError, match=r"^/tokenize: the answer holds no count of tokens$"):
        VLLM.read_text_count(body)
