"""What a request reserves: every sequence, under every name of a ceiling and without one, and what an engine adds."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from fakes.house import QUICK, House, house
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters

CHAT = {"messages": [{"role": "user", "content": "Hello"}]}
DEFAULT = 40
"""The lane's own output ceiling, of a request that names none."""
LANES = f"lanes.interactive.default_output_tokens = {DEFAULT}\n"
SWIFT = replace(QUICK, parameters=ReplicaParameters(step_times=StepTimes(1e-5, 1e-9, 1e-9)))
CONTEXT = 8192

RESERVED: dict[str, tuple[str, dict[str, Any], int, int, int]] = {
    "one, named": ("/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": 20}}, 1, 20, 0),
    "one, absent": ("/generate", {"inputs": "Hello"}, 1, DEFAULT, 0),
    "one, null": ("/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": None}}, 1, DEFAULT, 0),
    "one, beyond the engine's chunk": (
        "/generate",
        {"inputs": "Hello", "parameters": {"max_new_tokens": 2000}},
        1,
        2000,
        48,
    ),
    "the best of two": (
        "/generate",
        {"inputs": "Hello", "parameters": {"best_of": 2, "max_new_tokens": 1500, "do_sample": True}},
        2,
        1500,
        548,
    ),
    "a text, absent": ("/v1/completions", {"prompt": "Hello"}, 1, DEFAULT, 0),
    "three texts": ("/v1/completions", {"prompt": ["Hello"] * 3, "max_tokens": 20}, 3, 20, 0),
    "two texts, best of four": (
        "/v1/completions",
        {"prompt": ["Hello"] * 2, "n": 2, "best_of": 4, "max_tokens": 20},
        8,
        20,
        0,
    ),
    "the best of eight": ("/v1/completions", {"prompt": "Hello", "best_of": 8, "max_tokens": 20}, 8, 20, 0),
    "a chat, absent": ("/v1/chat/completions", CHAT, 1, DEFAULT, 0),
    "a chat, eight answers": ("/v1/chat/completions", {**CHAT, "n": 8, "max_tokens": 20}, 8, 20, 0),
    "a chat, the newer name": ("/v1/chat/completions", {**CHAT, "max_completion_tokens": 20}, 1, 20, 0),
    "a chat, one name null": (
        "/v1/chat/completions",
        {**CHAT, "max_tokens": None, "max_completion_tokens": 20},
        1,
        20,
        0,
    ),
}
"""Route, body, sequences, ceiling of each, and what the engine may run beyond it, to the end of its chunk of 1,024."""

REFUSED: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "nothing": ("/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": 0}}, 400, "malformed"),
    "less than nothing": ("/v1/chat/completions", {**CHAT, "max_tokens": -1}, 400, "malformed"),
    "a fraction": ("/v1/completions", {"prompt": "Hello", "max_tokens": 20.0}, 400, "malformed"),
    "a flag": ("/v1/completions", {"prompt": "Hello", "max_tokens": True}, 400, "malformed"),
    "a text": ("/v1/chat/completions", {**CHAT, "max_completion_tokens": "20"}, 400, "malformed"),
    "two names": ("/v1/chat/completions", {**CHAT, "max_tokens": 20, "max_completion_tokens": 20}, 400, "malformed"),
    "a thousand million answers": ("/v1/chat/completions", {**CHAT, "n": 10**9}, 400, "malformed"),
    "the best of ever so many": ("/generate", {"inputs": "Hello", "parameters": {"best_of": 10**9}}, 400, "malformed"),
    "the best of fewer than n": ("/v1/completions", {"prompt": "Hello", "n": 3, "best_of": 2}, 400, "malformed"),
    "more than the model": (
        "/generate",
        {"inputs": "Hello", "parameters": {"max_new_tokens": CONTEXT}},
        413,
        "context_limit",
    ),
    "more answers than fit": ("/v1/chat/completions", {**CHAT, "n": 128, "max_tokens": 1000}, 413, "lane_limit"),
}


@pytest.fixture
async def gate() -> AsyncIterator[House]:
    async with house(LANES, replicas=(SWIFT,), pool="gross_ceiling_tokens = 100_000") as running:
        yield running


async def input_tokens(gate: House, path: str) -> int:
    """Return what the engine itself counts of one prompt."""
    counting, body = ("/chat_tokenize", CHAT) if "chat" in path else ("/tokenize", {"inputs": "Hello"})
    async with gate.session.post(gate.urls[0] + counting, json=body) as answer:
        told = await answer.json()
    return len(told["tokenize_response"] if "chat" in path else told)


@pytest.mark.slow
async def test_every_sequence_is_reserved_with_its_input_and_the_ceiling_that_is_on_the_wire(gate: House) -> None:
    for name, (path, body, sequences, ceiling, overrun) in RESERVED.items():
        got = await gate.post(path, body)
        line = gate.decisions[-1]
        each = await input_tokens(gate, path)
        reserved = {
            "sequences": sequences,
            "input_tokens": sequences * each,
            "output_ceiling_tokens": ceiling,
            "reservation_tokens": sequences * (each + ceiling + overrun),
        }
        assert {field: line[field] for field in reserved} == reserved, name
        assert line["decision"] == "admit", name
        assert gate.active_tokens() == 0
        if got.status == 200 and sequences == 1:  # the engine runs every answer to its end
            assert line["output_tokens"] == ceiling + overrun, name


async def test_what_is_no_ceiling_or_beyond_every_bound_reaches_no_engine(gate: House) -> None:
    for name, (path, body, status, reason) in REFUSED.items():
        got = await gate.post(path, body)
        assert (name, got.status, got.reason) == (name, status, reason)
        assert "Retry-After" not in got.headers
        assert gate.active_tokens() == 0
    assert gate.replicas[0].replica.received_total == 0


async def test_the_gateway_holds_the_context_that_the_engine_checks_only_for_its_first_chunk(gate: House) -> None:
    body = {"inputs": "Hello", "parameters": {"max_new_tokens": 2 * CONTEXT}}
    async with gate.session.post(gate.urls[0] + "/generate_stream", json=body) as taken:
        assert taken.status == 200
        assert (await taken.content.readline()).startswith(b"data:"), "the engine generates"
        taken.close()
    refused = await gate.post("/generate_stream", body)
    assert (refused.status, refused.reason) == (413, "context_limit")
