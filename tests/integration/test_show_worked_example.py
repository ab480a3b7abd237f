"""The worked example on a running daemon: 96,000 - 9,600 - 66,000 live leaves 20,400, to `classify` and to requests."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from conftest import Cli
from fakes.programs import Served, serve, simulate
from fakes.texts import text_of_tokens

# Steps so slow that no stream of thousands of tokens ends, and a KV cache that holds more than the gateway lends.
REPLICA = (
    *("--tgi-version", "2.4.0", "--max-total-tokens", "131072", "--kv-tokens", "262144"),
    *("--step-seconds", "0.5", "--prefill-tokens-per-second", "1000000", "--output-mean", "ceiling"),
)
LIVE = ((30_000, 10_000), (20_000, 6_000))
HEADROOM_TOKENS = 20_400


def body(input_tokens: int, max_output: int) -> dict[str, Any]:
    return {"inputs": text_of_tokens(input_tokens), "parameters": {"max_new_tokens": max_output}}


@contextlib.asynccontextmanager
async def with_66_000_tokens_live(place: Path, profile: Path) -> AsyncIterator[tuple[Served, aiohttp.ClientSession]]:
    async with simulate(*REPLICA) as url:
        toml = f'[[pools]]\nprofile = "{profile}"\nreplicas = [{{ name = "r1", url = "{url}" }}]\n'
        async with (
            serve(place, toml) as served,
            aiohttp.ClientSession() as session,
            contextlib.AsyncExitStack() as live,
        ):
            for input_tokens, max_output in LIVE:
                asked = session.post(f"{served.data}/generate_stream", json=body(input_tokens, max_output))
                stream = await live.enter_async_context(asked)
                assert stream.status == 200
                assert stream.headers["x-llmshed-input-tokens"] == str(input_tokens)
                assert stream.headers["x-llmshed-reserved-tokens"] == str(input_tokens + max_output)
            yield served, session


CASES = [
    # input, output ceiling, reservation, fits, verdict, reason, status
    (14_000, 4_000, 18_000, True, "admit", None, 200),
    (19_000, 4_000, 23_000, False, "refuse", "token_budget_exhausted", 429),
    (200_000, 4_000, 204_000, False, "refuse", "context_limit", 413),
]


@pytest.mark.slow
async def test_classify_and_requests_agree_with_the_source_text_on_a_running_daemon(
    tmp_path: Path, repository: Path, cli: Cli
) -> None:
    profile = repository / "profiles" / "examples" / "worked-example.toml"
    async with with_66_000_tokens_live(tmp_path, profile) as (served, session):
        state = await (await session.get(f"{served.admin}/admin/state")).json()
        assert state["replicas"][0]["equation"]["active_tokens"] == 66_000
        for input_tokens, max_output, *expected in CASES:
            sizes = ("--input-tokens", str(input_tokens), "--max-output", str(max_output))
            for listener in (served.data, served.admin):
                report = await asyncio.to_thread(cli, "classify", *sizes, "--gateway", listener, "--json")
                assert judged(report.json()) == expected
                assert report.json()["equation"]["headroom_tokens"] == HEADROOM_TOKENS
            offline = cli(
                *("classify", *sizes, "--profile", profile, "--active", "58000", "--queued", "8000", "--json")
            )
            assert judged(offline.json()) == expected
            assert offline.json()["equation"]["headroom_tokens"] == HEADROOM_TOKENS
        # The one that is taken comes last, since it changes what is left.
        for input_tokens, max_output, *expected in reversed(CASES):
            request = body(input_tokens, max_output)
            file = tmp_path / "request.json"
            file.write_bytes(orjson.dumps(request))
            report = await asyncio.to_thread(cli, "classify", "--request", file, "--gateway", served.data, "--json")
            assert judged(report.json()) == expected
            assert report.json()["input_tokens"] == input_tokens
            await assert_request_is_judged(session, served, request, expected)


def judged(report: dict[str, Any]) -> list[Any]:
    return [report[name] for name in ("reservation_tokens", "fits", "verdict", "reason", "status")]


async def assert_request_is_judged(
    session: aiohttp.ClientSession, served: Served, request: dict[str, Any], expected: list[Any]
) -> None:
    reservation, fits, _, reason, status = expected
    async with session.post(f"{served.data}/generate_stream", json=request) as answer:
        assert answer.status == status
        assert answer.headers.get("x-llmshed-reason") == reason
        if status == 200:
            assert answer.headers["x-llmshed-reserved-tokens"] == str(reservation)
            assert answer.headers["x-llmshed-profile"] == "worked-example@1"
        assert ("Retry-After" in answer.headers) is (status == 429)
        if status == 429:
            assert int(answer.headers["Retry-After"]) >= 1
        request_id = answer.headers["x-request-id"]
    decision = await written(session, served, request_id)
    assert decision["equation"]["headroom_tokens"] == HEADROOM_TOKENS
    assert (decision["fits"], decision["reason"], decision["status"]) == (fits, reason, status)


async def written(session: aiohttp.ClientSession, served: Served, request_id: str) -> dict[str, Any]:
    """Wait for the decision of a request, which is written at its end."""
    async with asyncio.timeout(30):
        while True:
            async with session.get(f"{served.admin}/admin/decisions", params={"request_id": request_id}) as answer:
                if found := (await answer.json())["decisions"]:
                    return dict(found[0])
            await asyncio.sleep(0.02)
