"""A request's own deadline through the whole gateway: its line, its count, and the next request."""

from typing import Any

import aiohttp
import pytest

from fakes.house import House, house

STREAM = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}
CHAT = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}

pytestmark = pytest.mark.slow


async def objectives(gate: House) -> dict[str, float]:
    """Return what the counters of the objectives hold, over all lanes and classes, and the errors of replicas."""
    sums = {"llmshed_objective_requests_total": 0.0, "llmshed_good_requests_total": 0.0}
    sums["llmshed_upstream_errors_total"] = 0.0
    for line in (await gate.ask("GET", "/metrics", admin=True)).body.decode().splitlines():
        name, _, _ = line.partition("{")
        if name in sums:
            sums[name] += float(line.rpartition(" ")[2])
    return sums


@pytest.mark.parametrize(
    ("path", "body", "headers", "fault", "status", "termination", "told"),
    [
        (
            "/generate_stream",
            STREAM,
            {"x-llmshed-deadline-ms": "1000", "x-slo-ttft-ms": "900"},
            {"stall_after_events": 1},
            200,
            "DD",
            (1.0, 0.9),
        ),
        (
            "/v1/chat/completions",
            CHAT,
            {"x-envoy-expected-rq-timeout-ms": "1000", "grpc-timeout": "1H"},
            {"first_byte_delay_seconds": 60.0},
            504,
            "DP",
            (1.0, None),
        ),
    ],
)
async def test_a_late_answer_is_let_down_and_the_replica_is_not_blamed(
    path: str, body: Any, headers: dict[str, str], fault: dict[str, Any], status: int, termination: str, told: Any
) -> None:
    async with house(pool="release_grace_seconds = 0.05") as gate:
        async with aiohttp.ClientSession() as operator:
            await operator.post(f"{gate.urls[0]}/_simulate/faults", json={**fault, "times": 1})
        late = await gate.post(path, body, headers)
        assert late.status == status
        assert b"upstream_timeout" in late.body
        line = await gate.decision()
        assert (line["ending"], line["termination"], line["reason"]) == ("failed", termination, "upstream_timeout")
        assert (line["deadline_seconds"], line["first_token_seconds"]) == told
        assert line["total_seconds"] >= 1.0
        assert await objectives(gate) == {
            "llmshed_objective_requests_total": 1.0,
            "llmshed_good_requests_total": 0.0,
            "llmshed_upstream_errors_total": 0.0,
        }
        assert (await gate.post(path, body, headers)).status == 200
