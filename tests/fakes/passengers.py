"""Passengers of an oracle, and prompts that begin alike."""

from math import inf
from typing import Any

from fakes.stages import GPU
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.whatif.gates.engine_facts import EngineFacts
from llmshed.whatif.gates.passenger import Passenger
from llmshed.whatif.gates.prompts import NO_WORK


def passenger(key: int, input_tokens: int = 500, output_tokens: int = 50, **changed: Any) -> Passenger:
    facts = EngineFacts(GPU)
    return Passenger(
        key=key,
        sequences=changed.get("sequences", 1),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        prompt_tokens=changed.get("prompt_tokens", (input_tokens,)),
        copies=changed.get("copies", 1),
        blocks=changed.get("blocks"),
        kv_tokens=facts.kv_tokens_of(input_tokens, output_tokens, output_tokens),
        deadline=changed.get("deadline", inf),
        slack_seconds=1.0,
        tpot_seconds=changed.get("tpot_seconds", 0.1),
        first_token_seen=bool(changed.get("first_token_seen", True)),
        repeats=changed.get("repeats", ()),
        work=changed.get("work", NO_WORK),
    )


def ids(*runs: int) -> PromptBlocks:
    """Return ids of a prompt of runs of 100 tokens, each run known by its number."""
    return PromptBlocks(runs, 100)
