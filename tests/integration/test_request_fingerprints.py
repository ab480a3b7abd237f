"""The fingerprint of a decision line: repeats of a request are known by it, whatever became of them."""

import pytest

from fakes.house import JSON, house

ASKED = {"inputs": "Tell me of the sea.", "parameters": {"max_new_tokens": 2}}


async def test_a_repeat_has_the_fingerprint_of_the_first_and_nothing_else_has() -> None:
    turned = b'{ "parameters": {"max_new_tokens": 2},  "inputs": "Tell me of the sea." }'
    async with house() as gate:
        await gate.post("/generate", ASKED)
        await gate.ask("POST", "/generate", data=turned, headers=JSON)
        await gate.post("/generate", {**ASKED, "inputs": "Tell me of the sky."})
        await gate.post("/generate_stream", ASKED)
        first, again, other, elsewhere = (line["fingerprint"] for line in gate.decisions)
    assert first == again
    assert len({first, other, elsewhere}) == 3
    assert len(first) == 24


async def test_a_refused_request_has_one_as_a_served_one_has() -> None:
    async with house("lanes.bulk.max_input_tokens = 5\nlanes.interactive.max_input_tokens = 4") as gate:
        got = await gate.post("/generate", ASKED)
        await gate.post("/generate", ASKED)
        refused, again = (line["fingerprint"] for line in gate.decisions)
    assert got.status == 413
    assert refused == again is not None


@pytest.mark.parametrize("body", [b"{", b'{"inputs": 7}', b'{"inputs": "sea", "unheard_of": 1}'])
async def test_a_body_that_was_not_understood_has_none(body: bytes) -> None:
    async with house() as gate:
        await gate.ask("POST", "/generate", data=body, headers=JSON)
        (line,) = gate.decisions
    assert line["status"] in {400, 422}
    assert line["fingerprint"] is None
