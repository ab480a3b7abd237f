"""A replica's own counts of served prompts are compared with the gateway's, in every form in which it tells them."""

import pytest

from fakes.engine import Conversation, ScriptedEngine
from fakes.front import Front, with_front
from fakes.house import house

NATIVE = {"inputs": "Hello there", "parameters": {"max_new_tokens": 3, "details": True}}
CHAT = {
    "model": "tgi", "messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 3,
    "stream": True, "stream_options": {"include_usage": True},
}  # fmt: skip
TOLD = (
    ("/generate", NATIVE),
    ("/generate_stream", NATIVE),
    ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", CHAT | {"stream": False, "stream_options": None}),
    ("/v1/completions", {"model": "tgi", "prompt": "Hello there", "max_tokens": 3}),
)


async def test_each_form_of_an_answer_is_compared_and_is_equal() -> None:
    async with house() as gate:
        for number, (path, body) in enumerate(TOLD, 1):
            assert (await gate.post(path, body)).status == 200
            state = (await gate.ask("GET", "/admin/state", admin=True)).json()
            assert state["served_counts"] == {"r1": {"compared": number, "unlike": 0, "most_tokens": 0}}, path
        page = (await gate.ask("GET", "/metrics", admin=True)).body.decode()
        assert f'llmshed_served_counts_total{{equal="yes",replica="r1"}} {len(TOLD)}.0' in page
        assert 'llmshed_served_counts_total{equal="no",replica="r1"} 0.0' in page


@pytest.mark.parametrize(("told", "compared"), [("12", [("r1", 10, 12)]), ("many", []), (None, [])])
@with_front
async def test_a_replica_that_counts_otherwise_is_told_of(
    told: str | None, compared: list[tuple[str, int, int]], front: Front
) -> None:
    async def script(conversation: Conversation) -> None:
        headers = "" if told is None else f"X-Prompt-Tokens: {told}\r\n"
        await conversation.whole(b'{"generated_text":"a"}', headers=headers)

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        assert (await front.post("/generate", NATIVE)).status == 200
    assert front.heard.counts == compared
