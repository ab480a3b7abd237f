"""The simulated replica's native routes over real sockets, byte for byte where TGI's bytes are known."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from fakes.simulated import Site, embedded_vocabulary, simulated


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated() as running:
        yield running


def body(inputs: str = "Tell me about queues", **parameters: Any) -> dict[str, Any]:
    return {"inputs": inputs, "parameters": {"max_new_tokens": 4, **parameters}}


async def test_generate_answers_with_the_text_alone(site: Site) -> None:
    answer = await site.post("/generate", body())
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json) == ["generated_text"]


async def test_generate_tells_details_when_asked(site: Site) -> None:
    answer = await site.post("/generate", body(details=True))
    details = answer.json["details"]
    assert list(details) == ["finish_reason", "generated_tokens", "seed", "prefill", "tokens"]
    assert (details["finish_reason"], details["generated_tokens"], details["prefill"]) == ("length", 4, [])
    assert [list(token) for token in details["tokens"]] == [["id", "text", "logprob", "special"]] * 4
    assert "".join(token["text"] for token in details["tokens"]) == answer.json["generated_text"]


async def test_a_whole_answer_has_the_headers_of_its_work(site: Site) -> None:
    answer = await site.post("/generate", body("one two three"))
    counted = len((await site.post("/tokenize", {"inputs": "one two three"})).json)
    assert answer.headers["x-compute-type"] == "gpu+optimized"
    assert answer.headers["x-compute-characters"] == "13"
    assert answer.headers["x-prompt-tokens"] == str(counted)
    assert answer.headers["x-generated-tokens"] == "4"
    assert 0 < float(answer.headers["x-compute-time"]) < 10
    for name in ("total", "validation", "queue", "inference"):
        assert re.fullmatch(r"\d+", answer.headers[f"x-{name}-time"])
    assert re.fullmatch(r"\d+", answer.headers["x-time-per-token"])


async def test_the_root_answers_with_an_array_of_one_and_repeats_the_prompt(site: Site) -> None:
    whole = (await site.post("/", body("Hello"))).json
    alone = (await site.post("/generate", body("Hello"))).json
    assert whole == [{"generated_text": "Hello" + alone["generated_text"]}]
    bare = (await site.post("/", body("Hello", return_full_text=False))).json
    assert bare == [alone]


async def test_the_root_streams_when_the_body_says_so(site: Site) -> None:
    answer = await site.post("/", {**body("Hello"), "stream": True})
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.events[-1]["generated_text"].startswith("Hello")


async def test_a_stream_is_one_event_a_token_in_the_engine_s_bytes(site: Site) -> None:
    answer = await site.post("/generate_stream", body(details=True, seed=5, do_sample=True))
    counted = len((await site.post("/tokenize", {"inputs": "Tell me about queues"})).json)
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-compute-characters"] == "20"
    assert "x-compute-time" not in answer.headers
    token = rb'"token":\{"id":\d+,"text":"[^"]*","logprob":-\d+\.\d+,"special":false\}'
    middle = rb'data: \{"index":%d,' + token + rb',"generated_text":null,"details":null\}' + b"\n\n"
    details = rb'"finish_reason":"length","generated_tokens":4,"seed":5,"input_length":%d' % counted
    last = rb'data: \{"index":4,' + token + rb',"generated_text":"[^"]*","details":\{' + details + rb"\}\}" + b"\n\n"
    assert re.fullmatch(b"".join(middle % index for index in (1, 2, 3)) + last, answer.body)


async def test_a_stream_without_details_ends_with_the_text_alone(site: Site) -> None:
    events = (await site.post("/generate_stream", body())).events
    assert events[-1]["details"] is None
    assert events[-1]["generated_text"] == "".join(event["token"]["text"] for event in events)


async def test_top_tokens_are_told_only_when_asked(site: Site) -> None:
    events = (await site.post("/generate_stream", body(top_n_tokens=3))).events
    assert all(event["top_tokens"][0] == event["token"] for event in events)
    assert all(len(event["top_tokens"]) == 3 for event in events)


async def test_the_same_prompt_gives_the_same_text(site: Site) -> None:
    first, second = [(await site.post("/generate", body())).json for _ in range(2)]
    assert first == second


async def test_best_of_runs_several_sequences_and_tells_the_others(site: Site) -> None:
    answer = await site.post("/generate", body(best_of=2, do_sample=True, details=True))
    details = answer.json["details"]
    assert len(details["best_of_sequences"]) == 1
    other = details["best_of_sequences"][0]
    assert list(other)[:2] == ["generated_text", "finish_reason"]
    assert other["generated_text"] != answer.json["generated_text"]


async def test_a_stop_text_ends_the_answer_and_stays_in_it(site: Site) -> None:
    free = await site.post("/generate_stream", body(max_new_tokens=30))
    pieces = [event["token"]["text"] for event in free.events]
    stop = pieces[5]
    answer = await site.post("/generate", body(max_new_tokens=30, stop=[stop], details=True))
    assert answer.json["details"]["finish_reason"] == "stop_sequence"
    assert answer.json["generated_text"].endswith(stop)
    assert answer.json["details"]["generated_tokens"] == pieces.index(stop) + 1


async def test_an_end_token_is_special_and_not_in_the_text() -> None:
    async with simulated(output_mean_tokens=5.0) as site:
        events = (await site.post("/generate_stream", body(max_new_tokens=500, details=True))).events
    last = events[-1]
    assert last["token"]["special"] is True
    assert last["details"]["finish_reason"] == "eos_token"
    assert last["details"]["generated_tokens"] == len(events)
    assert last["generated_text"] == "".join(event["token"]["text"] for event in events[:-1])


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"max_new_tokens": 0}, "`max_new_tokens` must be strictly positive"),
        ({"truncate": 0}, "`truncate` must be strictly positive and less than 100. Given: 0"),
        ({"truncate": 101}, "`truncate` must be strictly positive and less than 100. Given: 101"),
        ({"best_of": 2}, "you must use sampling when `best_of` is > 1"),
        ({"best_of": 3, "do_sample": True}, "`best_of` must be > 0 and <= 2. Given: 3"),
        ({"best_of": 2, "do_sample": True, "seed": 1}, "`seed` must not be set when `best_of` > 1"),
        ({"temperature": 0}, "`temperature` must be strictly positive"),
        ({"top_p": 1.0}, "`top_p` must be > 0.0 and < 1.0"),
        ({"top_k": 0}, "`top_k` must be strictly positive"),
        ({"typical_p": 0}, "`typical_p` must be > 0.0 and < 1.0"),
        ({"repetition_penalty": 0}, "`repetition_penalty` must be strictly positive"),
        ({"frequency_penalty": 3}, "`frequency_penalty` must be >= -2.0 and <= 2.0"),
        ({"top_n_tokens": 6}, "`top_n_tokens` must be >= 0 and <= 5. Given: 6"),
        ({"stop": ["a"] * 5}, "`stop` supports up to 4 stop sequences. Given: 5"),
    ],
)
async def test_parameters_are_checked_with_the_engine_s_texts(parameters: dict[str, Any], text: str) -> None:
    async with simulated({"max_input_tokens": 100, "max_total_tokens": 200}) as site:
        answer = await site.post("/generate", body("hi", **parameters))
    assert (answer.status, answer.json) == (
        422,
        {"error": f"Input validation error: {text}", "error_type": "validation"},
    )


async def test_prompts_are_checked_total_before_input() -> None:
    long = "one two three four five six seven eight nine ten eleven twelve"
    counted = embedded_vocabulary().count(long, add_special_tokens=True)
    async with simulated({"max_input_tokens": counted - 1, "max_total_tokens": 60}) as site:
        too_much = await site.post("/generate", body(long, max_new_tokens=61 - counted))
        too_long = await site.post("/generate", body(long, max_new_tokens=60 - counted))
        empty = await site.post("/generate", body(""))
        cut = await site.post("/generate", body(long, truncate=5, max_new_tokens=1))
    start = "Input validation error: `inputs`"
    given = f"Given: {counted} `inputs` tokens and {61 - counted} `max_new_tokens`"
    assert too_much.json["error"] == f"{start} tokens + `max_new_tokens` must be <= 60. {given}"
    assert too_long.json["error"] == f"{start} must have less than {counted - 1} tokens. Given: {counted}"
    assert empty.json["error"] == f"{start} cannot be empty"
    assert cut.headers["x-prompt-tokens"] == "5"


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"max_new_tokens": 0}, "`max_new_tokens` must be strictly positive"),
        ({"top_k": 0}, "`top_k` must be strictly positive"),
    ],
)
async def test_a_stream_tells_its_errors_under_a_status_of_200(
    site: Site, parameters: dict[str, Any], text: str
) -> None:
    answer = await site.post("/generate_stream", body(**parameters))
    assert answer.status == 200
    expected = b'data: {"error":"Input validation error: ' + text.encode() + b'","error_type":"validation"}\n\n'
    assert answer.body == expected


@pytest.mark.parametrize(
    ("data", "headers", "status", "text"),
    [
        (b"{", {}, 400, "Failed to parse the request body as JSON: "),
        (b"", {}, 400, "Failed to parse the request body as JSON: "),
        (b'{"inputs": "\\ud800"}', {}, 400, "Failed to parse the request body as JSON: "),
        (b"{}", {}, 422, "Failed to deserialize the JSON body into the target type: missing field `inputs`"),
        (
            b'{"inputs": "x"}',
            {"content_type": "text/plain"},
            415,
            "Expected request with `Content-Type: application/json`",
        ),
        (
            b'{"inputs": "' + b"x" * 2_000_000 + b'"}',
            {},
            413,
            "Failed to buffer the request body: length limit exceeded",
        ),
    ],
)
async def test_a_body_that_cannot_be_read_is_answered_in_plain_text(
    site: Site, data: bytes, headers: dict[str, str], status: int, text: str
) -> None:
    answer = await site.post("/generate", data, **headers)
    assert answer.status == status
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.body.decode().startswith(text)


async def test_tokenize_lists_tokens_with_byte_offsets(site: Site) -> None:
    answer = await site.post("/tokenize", {"inputs": "grün", "parameters": {"truncate": 1}})
    assert all(list(token) == ["id", "text", "start", "stop"] for token in answer.json)
    assert answer.json[-1]["stop"] == 5
    assert len(answer.json) > 1


@pytest.mark.parametrize("path", ["/", "/health", "/ping"])
async def test_health_is_an_empty_200(site: Site, path: str) -> None:
    answer = await site.get(path)
    assert (answer.status, answer.body) == (200, b"")


async def test_models_are_listed(site: Site) -> None:
    model = {"id": "llmshed/simulated", "object": "model", "created": 0, "owned_by": "llmshed/simulated"}
    assert (await site.get("/v1/models")).json == {"object": "list", "data": [model]}


async def test_unknown_paths_and_methods_have_empty_answers(site: Site) -> None:
    assert ((await site.get("/nope")).status, (await site.get("/nope")).body) == (404, b"")
    assert ((await site.get("/generate")).status, (await site.get("/generate")).body) == (405, b"")


async def test_a_key_guards_the_posts_but_chat_tokenize_and_ignores_case() -> None:
    async with simulated(api_key="Secret") as site:
        assert (await site.post("/generate", body())).status == 401
        assert (await site.post("/generate", b"{", authorization="Bearer wrong")).body == b""
        assert (await site.post("/generate", body(), authorization="bearer SECRET")).status == 200
        chat = {"messages": [{"role": "user", "content": "hi"}]}
        assert (await site.post("/chat_tokenize", chat)).status == 200
        assert (await site.get("/info")).status == 200


@pytest.mark.parametrize(
    ("version", "asked", "tokens"),
    [
        ("1.4.5", "absent", 100),
        ("2.4.0", "absent", 100),
        ("2.4.0", None, 150),
        ("3.3.5", "absent", 150),
        ("3.0.1", None, 150),
    ],
)
async def test_a_request_without_a_ceiling_gets_that_of_its_version(
    version: str, asked: str | None, tokens: int
) -> None:
    async with simulated({"version": version, "max_input_tokens": 154, "max_total_tokens": 155}) as site:
        prompt = "a b c d e"
        assert len((await site.post("/tokenize", {"inputs": prompt})).json) == 5
        parameters: dict[str, Any] = {"details": True}
        if asked is None:
            parameters["max_new_tokens"] = None
        answer = await site.post("/generate", {"inputs": prompt, "parameters": parameters})
    assert answer.json["details"]["generated_tokens"] == tokens


async def test_the_oldest_version_writes_events_without_a_space_and_details_without_input_length() -> None:
    async with simulated({"version": "1.4.5", "max_batch_prefill_tokens": 8192}) as site:
        answer = await site.post("/generate_stream", body(details=True))
        models = await site.get("/v1/models")
    assert answer.body.startswith(b'data:{"index":1')
    assert list(answer.events[-1]["details"]) == ["finish_reason", "generated_tokens", "seed"]
    assert models.status == 404


async def test_a_ceiling_above_a_chunk_is_one_answer_that_overruns() -> None:
    async with simulated() as site:
        answer = await site.post("/generate_stream", body("a b", max_new_tokens=1500, details=True))
        metrics = (await site.get("/metrics")).body.decode()
    assert len(answer.events) == 2048
    assert [event["index"] for event in answer.events] == list(range(1, 2049))
    assert answer.events[-1]["details"]["generated_tokens"] == 2048
    assert answer.events[-1]["details"]["input_length"] == 2
    # The chunk, never what was asked, and once for each chunk.
    assert "tgi_request_max_new_tokens_sum 2048" in metrics
    assert "tgi_request_max_new_tokens_count 2" in metrics


async def test_the_metrics_tell_what_was_done(site: Site) -> None:
    await site.post("/generate", body())
    await site.post("/generate", body(""))
    await site.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2})
    await site.post("/v1/completions", {"prompt": ["a", "b"], "max_tokens": 2})
    text = (await site.get("/metrics")).body.decode()
    # Native 1 + 1, chat 2, completions 1 + 2.
    assert "\ntgi_request_count 7\n" in text
    assert "\ntgi_request_success 4\n" in text
    assert '\ntgi_request_failure{err="validation"} 1\n' in text
    assert "\ntgi_request_generated_tokens_sum 10\n" in text
    for gauge in ("tgi_queue_size", "tgi_batch_current_size", "tgi_batch_current_max_tokens"):
        assert f"\n{gauge} 0\n" in text
