"""Whatever the bytes, a reader gives requests in order or its one named error."""

import itertools
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.traces import read_file, seeded
from llmshed.errors import TraceError
from llmshed.workload.formats import FORMATS, TraceFormat, sniff
from llmshed.workload.readers.arena import read_arena
from llmshed.workload.readers.reading import Reading
from llmshed.workload.request import TracedRequest
from llmshed.workload.scaling import in_rate, in_time

LENGTHS = b'{"quantiles":[1,99],"clients":{"1":{"0":{"input_tokens":[10,20],"output_tokens":[5,9]}}}}'

BEGINNINGS = {
    "azure": b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n",
    "mooncake": b'{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}\n',
    "arena": b"arrival_s,tenant,prompt_len,output_len,first_token_latency_s,request_latency_s\n0.0,13,13,199,1.1,9.4\n",
    "burstgpt": b"Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,API log\n",
    "servegen": b"window_start_s,client,rate_per_s,interarrival_cv,pattern,p1,p2\n0,1,0.1,0.9,Gamma,1.2,8\n",
    "prometheus": b'# TYPE tgi_request_input_length histogram\ntgi_request_input_length_bucket{le="8"} 5\n'
    b'# TYPE tgi_request_generated_tokens histogram\ntgi_request_generated_tokens_bucket{le="8"} 5\n',
    "decisions": b'{"schema":"llmshed.decision/1","time_seconds":1767225600.5,"tenant":"acme","lane":"interactive",'
    b'"prompt_tokens":[12],"copies":1,"output_ceiling_tokens":64,"output_tokens":7,"status":200,"streamed":true,'
    b'"fingerprint":"f1","prefix_blocks":["b10c"],"ttft_seconds":0.1,"total_seconds":0.5,"ending":"finished"}\n'
    b'{"schema":"llmshed.decision/1","time_seconds":1767225600.25,"lane":"bulk","prompt_tokens":[30,10],"copies":2,'
    b'"status":429,"retry_after_seconds":1.5,"total_seconds":0.002,"ending":"refused"}\n',
    "sanitized": b"at_seconds,lane,tenant,input_tokens,asked_output_tokens,output_tokens,sequences\n"
    b"0.000000,interactive,t0123456789abcdef,12,64,7,1\n1.500000,bulk,t0123456789abcdef,30,,0,2\n",
    "prometheus-range": b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":'
    b'"tgi_request_input_length_bucket","le":"8"},"values":[[1,"0"],[2,"5"]]},{"metric":{"__name__":'
    b'"tgi_request_generated_tokens_bucket","le":"8"},"values":[[1,"0"],[2,"5"]]}]}}',
}
"""A small whole trace of each format, to break."""

HOSTILE = st.sampled_from([
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b",", b",,", b"{", b"}", b"[", b"]", b":", b"-", b"e",
    b"nan", b"NaN", b"inf", b"1e999", b"-1", b"99999999999999999999", b"null", b"true", b"0", b"\x1b[31m", b"#", b" ",
    "１".encode(), b"[" * 2000, b"x" * 5000,  # noqa: RUF001 - a digit that int() takes
])  # fmt: skip


def read(trace_format: TraceFormat, content: bytes, piece: int = 4096) -> list[TracedRequest]:
    reading = Reading(seeded(), rate_per_second=10.0, duration_seconds=30.0, companion=[LENGTHS])
    pieces = [content[at : at + piece] for at in range(0, len(content), piece)]
    return list(itertools.islice(trace_format.read(pieces, reading), 2000))


def hold(requests: list[TracedRequest]) -> None:
    assert all(earlier.at_seconds <= later.at_seconds for earlier, later in pairwise(requests))
    for one in requests:
        assert one.at_seconds >= 0.0
        assert one.input_tokens >= 1
        assert one.true_output_tokens >= 1
        assert one.tenant


@pytest.mark.parametrize("trace_format", FORMATS, ids=lambda one: one.name)
def test_the_small_trace_of_a_format_is_whole(trace_format: TraceFormat) -> None:
    content = BEGINNINGS[trace_format.name]
    assert sniff([content]) is trace_format
    requests = read(trace_format, content)
    assert requests
    hold(requests)


@pytest.mark.parametrize("trace_format", FORMATS, ids=lambda one: one.name)
@given(data=st.data())
def test_a_trace_broken_anywhere_gives_requests_or_the_named_error(
    trace_format: TraceFormat, data: st.DataObject
) -> None:
    content = BEGINNINGS[trace_format.name] * data.draw(st.integers(1, 2))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        gone = data.draw(st.integers(0, 12))
        content = content[:at] + data.draw(HOSTILE | st.binary(max_size=6)) + content[at + gone :]
    try:
        requests = read(trace_format, content, piece=data.draw(st.integers(1, 300)))
    except TraceError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either way is right
        assert len(str(error)) < 600  # noqa: PT017 - as above
    else:
        hold(requests)


@pytest.mark.parametrize("trace_format", FORMATS, ids=lambda one: one.name)
@given(content=st.binary(max_size=300))
def test_any_bytes_give_requests_or_the_named_error(trace_format: TraceFormat, content: bytes) -> None:
    with suppress(TraceError):
        hold(read(trace_format, content))


@given(content=st.binary(max_size=300))
def test_any_bytes_are_recognised_or_told(content: bytes) -> None:
    with suppress(TraceError):
        assert sniff([content]) in FORMATS


@pytest.mark.parametrize("factor", [0.3, 1.0, 2.7])
def test_twenty_readings_scaled_alike_are_one(data_dir: Path, factor: float) -> None:
    path = data_dir / "traces" / "arena_fcfs_a10g.csv.gz"
    runs = [list(in_time(in_rate(read_file(read_arena, path), factor, seeded(3)), 2.0)) for _ in range(20)]
    assert all(run == runs[0] for run in runs)
