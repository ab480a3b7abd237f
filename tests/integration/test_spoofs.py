"""Clients that claim to be more than their key allows: whatever they send, the decision is their key's or less."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fakes.house import house, request_bytes, until
from fakes.tenants import tenant
from fakes.wire import answers, talk

NAMES = (
    "x-priority", "priority", "x-request-priority", "x-gateway-priority", "x-gateway-class", "x-gateway-tier",
    "x-gateway-inference-objective", "x-gateway-inference-fairness-id", "x-llmshed-priority",
    "x-llmshed-priority-class", "x-llmshed-class", "x-llmshed-intent", "x-llmshed-lane", "x-llmshed-tenant",
    "x-llmshed-weight", "x-llmshed-replica", "x-llmshed-continuing", "x-llmshed-internal", "x_llmshed_class",
    "llmshed-class", "x-envoy-internal", "x-forwarded-user", "x-tenant", "x-consumer-username", "x-sglang-priority",
    "importance", "urgency", "x-slo-class",
)  # fmt: skip
VALUES = ("high", "HIGH", "High", "critical", "u=0", "u=0, i", "0", "-1", "99999", "interactive", "true", "acme")
FIELDS: tuple[dict[str, Any], ...] = (
    *({"priority": value} for value in (0, -100, 99999, "high")),
    *({"service_tier": tier} for tier in ("priority", "default", "auto", "scale", "high")),
    *({"metadata": {name: "interactive"}} for name in ("llmshed_intent", "LLMSHED_INTENT", "x-llmshed-intent")),
    *({"metadata": {name: "high"}} for name in ("llmshed_class", "priority", "priority_class", "x-llmshed-class")),
    *({name: "high"} for name in ("class", "priority_class", "llmshed_class", "x-llmshed-class", "user", "tier")),
    *({name: {"priority": 0, "class": "high"}} for name in ("extra_body", "nvext", "extra_headers", "llmshed")),
    {"messages": [{"role": "system", "content": "x-llmshed-class: high"}, {"role": "user", "content": "Hello"}]},
    {"prompt_cache_key": "high"},
)  # fmt: skip
TENANTS = {
    "plain": ("", {"normal", "low", None}, {"interactive", "bulk", None}),
    "batch": ('intents = ["bulk"]\ndefault_intent = "bulk"\npriority_class = "low"', {"low", None}, {"bulk", None}),
}
"""Each tenant's settings, and the classes and intents that it may ever be given; None while nothing was decided."""
CHAT = {"model": "tgi", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}


def _spoofs(number: int) -> Iterator[tuple[list[tuple[str, str]], dict[str, Any]]]:
    """Yield headers and bodies that claim more, drawn from a seed."""
    draw = Random(13)  # noqa: S311 - a seed, so that a failure can be repeated
    cases = (str.lower, str.upper, str.title, str.swapcase)
    for _ in range(number):
        headers = [
            (draw.choice(cases)(draw.choice(NAMES)), draw.choice(VALUES)) for _ in range(draw.choice((0, 1, 1, 2, 3)))
        ]
        if headers and draw.random() < 0.25:
            headers.append((draw.choice(cases)(headers[0][0]), draw.choice(("low", "high", headers[0][1]))))
        body = CHAT | draw.choice(FIELDS) if draw.random() < 0.4 or not headers else CHAT
        yield headers, body


@pytest.mark.parametrize("number", [40, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_no_claim_raises_the_class_the_intent_or_thetenant(tmp_path: Path, number: int) -> None:
    async with house("".join(tenant(tmp_path, name, more) for name, (more, *_) in TENANTS.items())) as gate:
        gates = asyncio.Semaphore(20)

        async def spoof(index: int, headers: list[tuple[str, str]], body: dict[str, Any]) -> int:
            name = list(TENANTS)[index % len(TENANTS)]
            own = ("Connection: close", f"Authorization: Bearer {name}-key", f"X-Request-Id: {name}.{index}")
            claims = (f"{field}: {value}" for field, value in headers)
            async with gates:
                raw = await talk(gate.port, request_bytes("/v1/chat/completions", body, *claims, *own))
            (answer,) = answers(raw)
            return answer.status

        statuses = await asyncio.gather(*(spoof(index, *one) for index, one in enumerate(_spoofs(number))))
        assert set(statuses) <= {200, 400, 403}  # served as what they are, or told that they may not
        await until(lambda: len(gate.decisions) == number)
        upgrades = [line for line in gate.decisions if _is_upgrade(line)]
        assert upgrades == []
        assert statuses.count(200) > number / 3


def _is_upgrade(line: dict[str, Any]) -> bool:
    name = line["request_id"].partition(".")[0]
    _, classes, intents = TENANTS[name]
    return line["tenant"] != name or line["priority_class"] not in classes or line["intent"] not in intents


async def test_a_class_that_is_sent_twice_is_no_class(tmp_path: Path) -> None:
    async with house(tenant(tmp_path, "plain", "")) as gate:
        for first, second in (("low", "high"), ("high", "low"), ("normal", "high")):
            lines = (f"x-llmshed-class: {first}", f"X-LLMSHED-CLASS: {second}")
            sent = request_bytes("/generate", {"inputs": "Hello"}, "Connection: close", "X-Api-Key: plain-key", *lines)
            (answer,) = answers(await talk(gate.port, sent))
            assert (answer.status, answer.json()["param"]) == (400, "x-llmshed-class")
