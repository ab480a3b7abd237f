"""Which requests a simulated replica looks up in its prefix cache, and what a hit saves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from fakes.simulated import embedded_vocabulary
from llmshed.emulator import Emulator, EmulatorSettings
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.recording import RecordedModel
from llmshed.simulation.results import Result, StepKind, StepsEnded
from llmshed.simulation.schedule import Called, Submit
from llmshed.simulation.scheduler import Scheduler

TEXT = "One prompt that comes more than once, so that its beginning may be known. " * 6
TIMES = StepTimes(step_seconds=0.001, seconds_per_prefill_token=0.000_01, seconds_per_decoding_sequence=0.0)


class Watched:
    """A replica on a socket, and all that its scheduler was told and told."""

    def __init__(self, url: str, session: aiohttp.ClientSession, told: list[Called | Result]) -> None:
        self._url = url
        self._session = session
        self._told = told

    async def post(self, path: str, posted: dict[str, Any]) -> None:
        async with self._session.post(self._url + path, json=posted) as response:
            assert response.status == 200
            await response.read()

    @property
    def prompts(self) -> list[PromptBlocks | None]:
        calls = [entry.call for entry in self._told if isinstance(entry, Called)]
        return [call.sequence.blocks for call in calls if isinstance(call, Submit)]

    @property
    def prefill_seconds(self) -> list[float]:
        steps = [entry for entry in self._told if isinstance(entry, StepsEnded)]
        return [step.seconds for step in steps if step.kind is StepKind.PREFILL]


@asynccontextmanager
async def watched(**parameters: Any) -> AsyncIterator[Watched]:
    given = ReplicaParameters(step_times=TIMES, **parameters)
    told: list[Called | Result] = []
    emulator = Emulator(
        EmulatorSettings(parameters=given, output_mean_tokens=None),
        vocabulary=embedded_vocabulary(),
        scheduler=RecordedModel(Scheduler(given), told.append),
    )
    url = await emulator.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield Watched(url, session, told)
    finally:
        await emulator.stop()
        assert emulator.replica.engine.check() == ()


def native(**parameters: Any) -> dict[str, Any]:
    return {"inputs": TEXT, "parameters": {"max_new_tokens": 3, **parameters}}


async def test_prompts_are_known_by_their_token_ids() -> None:
    ids = embedded_vocabulary().ids(TEXT, add_special_tokens=True)
    async with watched(prefix_caching=True) as replica:
        await replica.post("/generate", native())
        await replica.post("/generate_stream", native())
        await replica.post("/v1/completions", {"prompt": TEXT, "max_tokens": 3, "stream": True})
        assert replica.prompts == [PromptBlocks(ids, 1)] * 3


async def test_a_chat_is_known_by_the_ids_of_its_rendered_text() -> None:
    async with watched(prefix_caching=True) as replica:
        await replica.post("/v1/chat/completions", {"messages": [{"role": "user", "content": TEXT}], "max_tokens": 3})
        (prompt,) = replica.prompts
        assert prompt is not None
        assert len(prompt.ids) > len(embedded_vocabulary().ids(TEXT, add_special_tokens=False))


async def test_requests_for_the_prompts_log_probabilities_pass_the_cache_by() -> None:
    async with watched(prefix_caching=True) as replica:
        await replica.post("/v1/completions", {"prompt": TEXT, "max_tokens": 3})
        await replica.post("/generate", native(decoder_input_details=True))
        assert replica.prompts == [None, None]


async def test_of_a_truncated_prompt_the_last_ids_are_known() -> None:
    ids = embedded_vocabulary().ids(TEXT, add_special_tokens=True)
    async with watched(prefix_caching=True) as replica:
        await replica.post("/generate", native(truncate=10))
        assert replica.prompts == [PromptBlocks(ids[-10:], 1)]


async def test_without_the_cache_nothing_is_known() -> None:
    async with watched() as replica:
        await replica.post("/generate", native())
        assert replica.prompts == [None]


async def test_a_prompt_that_ended_is_worked_through_but_for_its_last_token() -> None:
    tokens = embedded_vocabulary().count(TEXT, add_special_tokens=True)
    async with watched(prefix_caching=True) as replica:
        await replica.post("/generate", native())
        await replica.post("/generate", native())
        first, second = replica.prefill_seconds
    # The clock counts from the machine's start, so a difference of its readings is exact to a nanosecond.
    assert first == pytest.approx(0.001 + tokens * 0.000_01, abs=1e-9)
    assert second == pytest.approx(0.001 + 1 * 0.000_01, abs=1e-9)


@pytest.mark.parametrize("text", [TEXT, "", "é 漢字 \U0001f600", "<|endoftext|> a"])
@pytest.mark.parametrize("special", [True, False])
def test_there_are_as_many_ids_as_are_counted(text: str, *, special: bool) -> None:
    vocabulary = embedded_vocabulary()
    ids = vocabulary.ids(text, add_special_tokens=special)
    assert len(ids) == vocabulary.count(text, add_special_tokens=special)
    if text:
        assert list(ids) == [token["id"] for token in vocabulary.tokens(text, add_special_tokens=special)]
