"""Streams of TGI, followed from the side."""

import json
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.engines import events
from llmshed.engines.base import Call, Route, StreamFacts, UpstreamFault
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.tokenizing.prompts import TextPrompt


def facts(*pieces: bytes, route: Route = Route.CHAT, prompts: int = 1, version: str = "3.3.5") -> StreamFacts:
    call = Call(route, {}, streamed=True, model=None, prompts=(TextPrompt("a"),) * prompts)
    reader = TgiEngine(version).stream_reader(call)
    for piece in pieces:
        reader.feed(piece)
    reader.end()
    return reader.facts


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def token(**last: Any) -> bytes:
    word = {"id": 264, "text": " a", "logprob": -0.5, "special": False}
    return event({"index": 1, "token": word, "generated_text": None, "details": None, **last})


def chunk(finish_reason: str | None = None, index: int = 0, usage: Any = None) -> bytes:
    choice = {"index": index, "delta": {"role": "assistant", "content": " a"}, "finish_reason": finish_reason}
    return event({"object": "chat.completion.chunk", "id": "", "choices": [choice], "usage": usage})


def text_chunk(finish_reason: str = "", index: int = 0, **last: Any) -> bytes:
    choice = {"index": index, "text": " a", "logprobs": None, "finish_reason": finish_reason}
    return event({"object": "text_completion", "id": "", "choices": [choice], **last})


def usage(completion_tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 9, "completion_tokens": completion_tokens, "total_tokens": 9 + completion_tokens}


DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b":\n\n"


@pytest.mark.parametrize("route", [Route.ROOT, Route.GENERATE_STREAM])
def test_a_native_stream_is_one_event_a_token_and_ends_with_the_text(route: Route) -> None:
    seen = facts(KEEP_ALIVE, token(), token(), token(generated_text=" a a a"), route=route)
    assert seen == StreamFacts(data_events=3, output_tokens=3, complete=True)


def test_the_details_of_a_native_stream_settle_count_and_finish_reason() -> None:
    details = {"finish_reason": "eos_token", "generated_tokens": 7, "seed": None, "input_length": 4}
    seen = facts(token(), token(generated_text="", details=details), route=Route.GENERATE_STREAM)
    assert seen == StreamFacts(data_events=2, output_tokens=7, input_tokens=4, complete=True, finish_reason="eos_token")


def test_a_native_stream_that_is_cut_is_not_complete() -> None:
    assert facts(token(), token(), route=Route.ROOT) == StreamFacts(data_events=2, output_tokens=2)


def test_a_native_stream_has_no_terminator() -> None:
    assert not facts(token(), DONE, route=Route.ROOT).complete


def test_a_chat_stream_is_one_chunk_a_token_and_ends_with_done() -> None:
    seen = facts(chunk(), chunk(), chunk("length"), DONE)
    assert seen == StreamFacts(data_events=4, output_tokens=3, complete=True, finish_reason="length")


def test_the_usage_chunk_of_a_chat_settles_its_count() -> None:
    settled = event({"object": "chat.completion.chunk", "choices": [], "usage": usage(5)})
    assert facts(chunk(), chunk("stop"), settled, DONE).output_tokens == 5


def test_a_usage_of_nothing_is_believed() -> None:
    assert facts(chunk(), event({"choices": [], "usage": usage(0)}), DONE).output_tokens == 0


def test_a_chat_stream_without_done_is_not_complete() -> None:
    assert not facts(chunk(), chunk("stop")).complete


@pytest.mark.parametrize("version", ["1.4.5", "2.0.2", "2.1.1"])
def test_before_2_2_a_finish_reason_completes_since_no_done_was_sent(version: str) -> None:
    assert facts(chunk(), chunk("eos_token"), version=version).complete
    assert not facts(chunk(), chunk(), version=version).complete
    two = (text_chunk(index=0), text_chunk("length", index=1))
    assert not facts(*two, route=Route.COMPLETIONS, prompts=2, version=version).complete
    assert facts(*two, text_chunk("length"), route=Route.COMPLETIONS, prompts=2, version=version).complete


def test_a_completion_ends_with_its_own_usage() -> None:
    seen = facts(text_chunk(), text_chunk("stop_sequence", usage=usage(9)), DONE, route=Route.COMPLETIONS)
    assert seen == StreamFacts(3, 9, input_tokens=9, complete=True, finish_reason="stop_sequence")


def test_interleaved_prompts_are_counted_each_and_settled_each() -> None:
    events = [
        text_chunk(index=0),
        text_chunk(index=1),
        text_chunk(index=2),
        text_chunk("length", index=1, usage=usage(10)),
        text_chunk(index=0),
        text_chunk("length", index=0, usage=usage(20)),
        text_chunk(index=2),
    ]
    assert facts(*events, route=Route.COMPLETIONS, prompts=3).output_tokens == 20 + 10 + 2


def test_a_keep_alive_is_not_a_start() -> None:
    assert facts(KEEP_ALIVE * 10) == StreamFacts()


@pytest.mark.parametrize("route", [Route.ROOT, Route.GENERATE_STREAM])
def test_an_overloaded_native_stream_is_busy(route: Route) -> None:
    seen = facts(event({"error": "Model is overloaded", "error_type": "overloaded"}), route=route)
    assert seen.failure is not None
    assert (seen.failure.fault, seen.failure.status) == (UpstreamFault.BUSY, 429)
    assert not seen.complete
    assert seen.output_tokens == 0


def test_an_openai_stream_that_failed_is_not_complete_though_done_follows() -> None:
    seen = facts(chunk(), event({"error": {"message": "Incomplete generation", "http_status_code": 422}}), DONE)
    assert seen.failure is not None
    assert (seen.failure.fault, seen.failure.status) == (UpstreamFault.ENGINE, 500)
    assert not seen.complete
    assert seen.output_tokens == 1


def test_the_first_failure_is_the_one_told() -> None:
    seen = facts(
        event({"error": {"message": "Input validation error: a", "http_status_code": 422}}),
        event({"error": {"message": "Model is overloaded", "http_status_code": 422}}),
    )
    assert seen.failure is not None
    assert seen.failure.fault is UpstreamFault.CLIENT


def test_a_failure_after_the_end_takes_the_completeness_back() -> None:
    assert not facts(chunk("stop"), DONE, event({"error": "Incomplete generation"})).complete


@pytest.mark.parametrize(
    "hostile",
    [
        b"data: {\n\n",
        b"data: 7\n\n",
        b"data: []\n\n",
        b"data: \xff\xfe\n\n",
        b"data: " + b"[" * 5000 + b"\n\n",
        event({"choices": [7]}),
        event({"choices": [{"index": "0", "finish_reason": 7}]}),
        event({"choices": [{"index": 10**12, "finish_reason": "x" * 1000}]}),
        event({"choices": {}, "usage": {"completion_tokens": -1}}),
        event({"choices": [], "usage": {"completion_tokens": True}}),
        event({"choices": [], "usage": {"completion_tokens": 10**15}}),
        event({"choices": [], "usage": 7}),
        event({"token": 7, "details": 7, "generated_text": 7}),
        event({"token": {}, "details": {"generated_tokens": "7", "finish_reason": {}}}),
    ],
)
@pytest.mark.parametrize("route", [Route.CHAT, Route.COMPLETIONS, Route.ROOT])
def test_an_event_that_is_not_tgis_is_seen_and_tells_at_most_of_one_token(hostile: bytes, route: Route) -> None:
    seen = facts(hostile, route=route)
    assert seen.data_events == 1
    assert seen.output_tokens in {0, 1}
    assert not seen.complete
    assert seen.failure is None
    assert seen.finish_reason is None


def test_indexes_of_any_number_are_counted_in_bounded_memory() -> None:
    call = Call(Route.COMPLETIONS, {}, streamed=True, model=None, prompts=(TextPrompt("a"),) * 2)
    reader = TgiEngine().stream_reader(call)
    for index in range(1000):
        reader.feed(text_chunk(index=index))
    assert reader.facts.output_tokens == 1000
    assert len(vars(reader)["_counts"]) <= 3


def test_a_stray_index_is_not_settled_by_another_sequences_usage() -> None:
    events = (text_chunk(index=99), text_chunk(index=0), text_chunk("length", index=0, usage=usage(10)))
    assert facts(*events, route=Route.COMPLETIONS).output_tokens == 11


pieces_of_streams = st.sampled_from(
    [
        token(),
        token(generated_text="a", details={"generated_tokens": 3, "finish_reason": "length"}),
        chunk(),
        chunk("stop", usage=usage(4)),
        text_chunk(index=1, usage=usage(2)),
        event({"choices": [], "usage": usage(6)}),
        event({"error": "Model is overloaded", "error_type": "overloaded"}),
        event({"error": {"message": "Template error: a", "http_status_code": 422}}),
        DONE,
        KEEP_ALIVE,
        chunk().replace(b"\n", b"\r\n"),
        chunk().replace(b"data: ", b"data:"),
    ]
)


@given(
    st.lists(pieces_of_streams | st.binary(max_size=8), max_size=12).map(b"".join),
    st.lists(st.integers(0, 2000)),
    st.sampled_from([Route.CHAT, Route.COMPLETIONS, Route.ROOT, Route.GENERATE_STREAM]),
)
def test_any_bytes_in_any_split_give_the_same_facts(raw: bytes, cuts: list[int], route: Route) -> None:
    places = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    pieces = [raw[start:end] for start, end in pairwise(places)]
    assert facts(*pieces, route=route, prompts=2) == facts(raw, route=route, prompts=2)


def with_text(text: bytes, key: str = "content") -> bytes:
    """Write a chunk by hand, with whatever bytes for its text."""
    place = b'"delta":{"content":"%b"}' if key == "content" else b'"text":"%b"'
    return b'data: {"choices":[{"index":0,' + place % text + b',"finish_reason":null}],"usage":null}\n\n'


texts = st.one_of(
    st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")),
    st.binary(max_size=4),
    st.sampled_from(
        [b'"', b"\\", b'\\"', b"\n", b"\x7f", b"\xc3\xa9", b"\xc3", b"\xed\xa0\x80", b'","finish_reason":"stop', b""]
    ),
)
near_repeats = st.builds(with_text, texts, st.sampled_from(["content", "text"])) | pieces_of_streams


@given(
    st.lists(near_repeats, max_size=12),
    st.sampled_from([Route.CHAT, Route.COMPLETIONS]),
    st.sampled_from([1, 2]),
    st.sampled_from(["3.3.5", "2.0.2"]),
)
def test_an_event_that_repeats_another_counts_as_if_it_had_been_parsed(
    pieces: list[bytes], route: Route, prompts: int, version: str
) -> None:
    by_bytes = [byte.to_bytes(1) for piece in pieces for byte in piece]  # which no event can be recognised in
    whole = facts(*pieces, route=route, prompts=prompts, version=version)
    assert whole == facts(*by_bytes, route=route, prompts=prompts, version=version)


def test_a_stream_of_repeats_is_parsed_where_it_says_something_new(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    class Parser:
        JSONDecodeError = orjson.JSONDecodeError

        @staticmethod
        def loads(data: bytes) -> Any:
            parsed.append(data)
            return orjson.loads(data)

    monkeypatch.setattr(events, "orjson", Parser)
    seen = facts(*(with_text(b"%d" % number) for number in range(50)), chunk("stop", usage=usage(60)), DONE)
    assert seen == StreamFacts(52, 60, input_tokens=9, complete=True, finish_reason="stop")
    assert len(parsed) == 2


def test_the_repeats_of_one_sequence_are_not_counted_for_another() -> None:
    first, second = with_text(b"a"), with_text(b"a").replace(b'"index":0', b'"index":1')
    settled = chunk("length", index=1, usage=usage(10))
    pieces = (first, second[:9], second[9:], first, first, settled)
    assert facts(*pieces, prompts=2).output_tokens == 3 + 10
