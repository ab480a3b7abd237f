"""A running gateway whose replica is swapped for another one, which derates, warns of or refuses it as its pool says.

The minute between two comparisons is shortened to a fiftieth of a second; the five minutes that a pace is watched for
pass on a loop that leaps.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.house import QUICK, House, house, until
from fakes.leaping import LoopClock, in_leaping_time, leaping_house
from fakes.profiles import ASKED, BUDGET, PROFILE, written
from llmshed.emulator import Emulator, EmulatorSettings
from llmshed.emulator.vocabulary import Vocabulary
from llmshed.emulator.wire import info as true_info
from llmshed.engines.base import Engine
from llmshed.gateway.relay.upstream import UpstreamClient
from llmshed.gateway.replicas import life as replica_life
from llmshed.gateway.replicas import serving, signals
from llmshed.gateway.replicas.selfcheck import RECOUNTED, SelfCheck, check_counts
from llmshed.profile import pace
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.tokenizing.base import PromptCounter
from llmshed.tokenizing.load import embedded, find

UPSTREAM = "[upstream]\nprobe_interval_seconds = 0.01\nsignal_interval_seconds = 0\n"
DECLARED = 'declared = { gpu = "NVIDIA L4" }\nprofile = "'

Told = dict[int, dict[str, Any]]
"""What replicas tell otherwise than the emulator would, by the identity of their parameters."""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """Let each replica tell of itself what a test says."""
    overrides: Told = {}

    def info(parameters: ReplicaParameters, model_id: str) -> dict[str, Any]:
        return {**true_info(parameters, model_id), **ASKED, **overrides.get(id(parameters), {})}

    monkeypatch.setattr("llmshed.emulator.server.info", info)
    return overrides


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare often and with few probes, and look often whether a budget has changed."""

    async def few(
        client: UpstreamClient, url: str, engine: Engine, counter: PromptCounter, timeout_seconds: float, *_: object
    ) -> SelfCheck:
        return await check_counts(client, url, engine, counter, timeout_seconds, RECOUNTED)

    monkeypatch.setattr(serving, "check_counts", few)
    for name, seconds in (("INFO_SECONDS", 0.02), ("RETRY_SECONDS", 0.05), ("SUSPICION_SECONDS", 0.01)):
        monkeypatch.setattr(replica_life, name, seconds)
    monkeypatch.setattr(signals, "LOOK_SECONDS", 0.01)


def own_settings() -> EmulatorSettings:
    """Return settings whose parameters are no other replica's."""
    return replace(QUICK, parameters=replace(QUICK.parameters))


@asynccontextmanager
async def gate_of(place: Path, on_mismatch: str, replicas: int = 1) -> AsyncIterator[House]:
    """Run a gateway before replicas of one profile."""
    pool = f'on_mismatch = "{on_mismatch}"\n{DECLARED}{written(place)}"'
    async with house(UPSTREAM, replicas=tuple(own_settings() for _ in range(replicas)), pool=pool) as gate:
        await until(lambda: len(up(gate)) == replicas)
        yield gate


def up(gate: House) -> set[str]:
    return {replica.name for replica in gate.daemon.gateway.driver.state().replicas if replica.up}


def budget(gate: House, name: str = "r1") -> int:
    return next(
        replica.equation.safe_budget_tokens
        for replica in gate.daemon.gateway.driver.state().replicas
        if replica.name == name
    )


async def metric(gate: House, name: str) -> list[str]:
    page = (await gate.ask("GET", "/metrics", admin=True)).body.decode()
    return [line for line in page.splitlines() if line.startswith(name)]


def swap(gate: House, told: Told, changed: dict[str, Any], number: int = 0) -> None:
    told[id(gate.replicas[number].settings.parameters)] = changed


SWAPS = {
    "engine": {"version": "3.3.4"},
    "model": {"model_sha": "0" * 40},
    "precision": {"model_dtype": "torch.bfloat16"},
}
"""Another engine version, model revision and dtype, by the kind of facts that it shows in."""
ONE_TOKEN = {"inputs": "Hi", "parameters": {"max_new_tokens": 1}}


def watched_paces(gate: House) -> pace.PaceWatch:
    """Return what judges the pace of `r1` now."""
    return gate.daemon.gateway.fleet._signals._watched["r1"].watch._paces


async def mismatches(gate: House, replica: str) -> set[str]:
    """Return the kinds that a scrape shows to differ."""
    shown = await metric(gate, "llmshed_profile_match")
    ends = f',replica="{replica}",state="mismatch"}} 1.0'
    return {line.partition('kind="')[2].partition('"')[0] for line in shown if line.endswith(ends)}


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("kinds", [("engine",), pytest.param(("model", "precision"), marks=pytest.mark.soak)])
async def test_a_replica_that_is_swapped_is_derated_and_has_all_back_with_the_old_one(
    tmp_path: Path, told: Told, kinds: tuple[str, ...]
) -> None:
    async with gate_of(tmp_path, "derate") as gate:
        for kind in kinds:
            changed = SWAPS[kind]
            assert budget(gate) == 40_000
            before = watched_paces(gate)
            swap(gate, told, changed)
            await until(lambda: budget(gate) == 20_000)
            assert await mismatches(gate, "r1") == {kind}
            assert watched_paces(gate) is not before
            assert await metric(gate, "llmshed_profile_budget_factor{") == [
                'llmshed_profile_budget_factor{replica="r1"} 0.5'
            ]
            assert (await gate.post("/generate", ONE_TOKEN)).status == 200
            swap(gate, told, {})
            await until(lambda: budget(gate) == 40_000)
        assert up(gate) == {"r1"}


@pytest.mark.usefixtures("hurried")
async def test_a_pool_that_warns_keeps_all_of_its_budget(
    tmp_path: Path, told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    async with gate_of(tmp_path, "warn") as gate:
        for kind, changed in SWAPS.items():
            swap(gate, told, changed)
            await until(lambda: "profile_mismatch" in [record.message for record in caplog.records])
            assert await mismatches(gate, "r1") == {kind}
            assert (budget(gate), up(gate)) == (40_000, {"r1"})
            caplog.clear()


@pytest.mark.slow
@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("kinds", [("precision",), pytest.param(("engine", "model"), marks=pytest.mark.soak)])
async def test_a_pool_that_refuses_takes_it_out_and_leaves_the_last_one(
    tmp_path: Path, told: Told, kinds: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async with gate_of(tmp_path, "refuse", replicas=2) as gate:
        for changed in [SWAPS[kind] for kind in kinds]:
            swap(gate, told, changed, 1)
            await until(lambda: up(gate) == {"r1"})
            assert "not what its profile was measured on" in gate.daemon.gateway.fleet.troubles["r2"]
            assert budget(gate) == 40_000
            swap(gate, told, changed, 0)
            await until(lambda: budget(gate) == 20_000)
            await until(lambda: "replica_kept_as_last" in [record.message for record in caplog.records])
            assert up(gate) == {"r1"}
            assert (await gate.post("/generate", ONE_TOKEN)).headers["x-llmshed-replica"] == "r1"
            swap(gate, told, {}, 1)  # beside one that is as measured, the other need not be kept
            await until(lambda: up(gate) == {"r2"})
            assert (await gate.post("/generate", ONE_TOKEN)).headers["x-llmshed-profile"] == "measured@7"
            swap(gate, told, {}, 0)
            await until(lambda: up(gate) == {"r1", "r2"})
            caplog.clear()


@pytest.mark.slow
@pytest.mark.usefixtures("hurried", "told")
async def test_a_refused_replica_comes_back_when_it_is_the_last(tmp_path: Path, told: Told) -> None:
    async with gate_of(tmp_path, "refuse", replicas=2) as gate:
        swap(gate, told, {"version": "3.3.4"}, 1)
        await until(lambda: up(gate) == {"r1"})
        await gate.replicas[0].stop()
        await until(lambda: up(gate) == {"r2"})
        assert budget(gate, "r2") == 20_000


@pytest.fixture(scope="module")
def other_template(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    """The same tokenizer with a chat template that writes more."""
    place = tmp_path_factory.mktemp("other")
    (place / "tokenizer.json").write_text(embedded().tokenizer_json)
    template = "{% for m in messages %}role and content: {{ m.role }} {{ m.content }} end of turn {% endfor %}"
    (place / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, "eos_token": "</s>"}))
    return Vocabulary(find(str(place)))


def retemplate(emulator: Emulator, vocabulary: Vocabulary) -> Vocabulary:
    """Let a replica render chats otherwise from now on; returns the vocabulary that it had."""
    infer = emulator._infer
    assert infer is not None
    before, infer.vocabulary = infer.vocabulary, vocabulary
    return before


@pytest.mark.usefixtures("hurried", "told")
async def test_another_template_behind_the_same_info_is_derated_until_it_is_the_old_one(
    tmp_path: Path, other_template: Vocabulary
) -> None:
    async with gate_of(tmp_path, "derate") as gate:
        before = retemplate(gate.replicas[0], other_template)
        await until(lambda: budget(gate) == 20_000)
        assert await mismatches(gate, "r1") == {"tokenizer"}
        retemplate(gate.replicas[0], before)
        await until(lambda: budget(gate) == 40_000)


@pytest.mark.slow
@pytest.mark.usefixtures("hurried", "told")
async def test_another_template_is_refused_and_the_last_one_kept(tmp_path: Path, other_template: Vocabulary) -> None:
    async with gate_of(tmp_path, "refuse", replicas=2) as gate:
        retemplate(gate.replicas[1], other_template)
        await until(lambda: up(gate) == {"r1"})
        retemplate(gate.replicas[0], other_template)
        await until(lambda: budget(gate) == 20_000)
        assert up(gate) == {"r1"}


@pytest.mark.slow
@pytest.mark.usefixtures("hurried", "told")
async def test_a_replica_that_restarts_as_another_version_is_derated_from_its_first_request(tmp_path: Path) -> None:
    async with gate_of(tmp_path, "derate") as gate:
        port = int(gate.urls[0].rpartition(":")[2])
        await gate.replicas[0].stop()
        await until(lambda: not up(gate))
        settings = replace(QUICK, parameters=replace(QUICK.parameters, version="3.3.4"))
        gate.replicas[0] = Emulator(settings)
        await gate.replicas[0].start("127.0.0.1", port)
        try:
            await until(lambda: up(gate))
            assert budget(gate) == 20_000
        finally:
            await gate.replicas[0].stop()


@pytest.mark.usefixtures("told")
async def test_thresholds_that_a_profile_was_not_made_for_are_warned_of_and_named_in_each_decision(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stated = f"{PROFILE}[lanes.interactive]\nttft_objective_seconds = 1.0\n"
    async with house(pool=f'{DECLARED}{written(tmp_path, stated)}"') as gate:
        warned = [vars(record)["detail"] for record in caplog.records if record.message == "thresholds_differ"]
        assert warned == ["lanes.interactive.ttft_objective_seconds is 2.0; profile measured@7 was made for 1.0"]
        await gate.post("/generate", ONE_TOKEN)
        before = (await gate.decision())["thresholds_version"]
        gate.toml = "[lanes.interactive]\nttft_objective_seconds = 1.0\n"
        caplog.clear()
        assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200
        assert "thresholds_differ" not in [record.message for record in caplog.records]
        await gate.post("/generate", ONE_TOKEN)
        after = (await gate.decision(lambda line: line["thresholds_version"] != before))["thresholds_version"]
        assert len(before) == len(after) == 12


# The same /info before another GPU: only the steps are slower.

STEP, PROMPT_TOKEN = 0.020, 0.0001
TIMES = StepTimes(STEP, PROMPT_TOKEN, 0.0)
MEASURED = f"""{BUDGET}[decode]
seconds_per_token = {STEP}
curve = [{{ sequences = 1, seconds_per_token = {STEP} }}]
[fingerprint.behaviour]
decode_step_seconds = {STEP}
fixed_prompt_tokens = 1000
fixed_prompt_prefill_seconds = {STEP + 1000 * PROMPT_TOKEN}
"""
PROMPT = "word " * 1200
ANSWERS = 3
"""Answers in a minute, and samples that make one tell: fewer than in earnest, since each token is a leap."""


def of_times(times: StepTimes) -> EmulatorSettings:
    parameters = replace(QUICK.parameters, step_times=times, max_batch_prefill_tokens=8192)
    return replace(QUICK, parameters=parameters)


async def minute(gate: House, clock: Callable[[], float], at_once: int = 1) -> None:
    """Stream some answers, so many at once, and let the rest of a minute pass."""
    ends = clock() + 60.0
    asked = {"inputs": PROMPT, "parameters": {"max_new_tokens": 64}}
    for _ in range(ANSWERS):
        answers = await asyncio.gather(*(gate.post("/generate_stream", asked) for _ in range(at_once)))
        assert {answer.status for answer in answers} == {200}
    await until_clock(ends, clock)


def look_at(gate: House, name: str) -> None:
    """Have a replica looked at, which these gateways do once an hour."""
    life = gate.daemon.gateway.fleet._members[name].life
    assert life is not None
    life.suspect()


def slow_down(gate: House, number: int) -> None:
    """Let the steps of a replica take 1.4 times as long from now on."""
    slower = StepTimes(1.4 * STEP, 1.4 * PROMPT_TOKEN, 0.0)
    object.__setattr__(gate.replicas[number].settings.parameters, "step_times", slower)


async def until_clock(at: float, clock: Callable[[], float]) -> None:
    await asyncio.sleep(max(0.0, at - clock()))


@pytest.mark.slow
@in_leaping_time
async def test_a_slower_gpu_behind_the_same_info_is_derated_after_five_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = LoopClock().now
    monkeypatch.setattr(pace, "LEAST_STREAMS", ANSWERS)
    pool = f'profile = "{written(tmp_path, MEASURED)}"\nlanes = ["interactive"]'
    async with leaping_house(replicas=(of_times(TIMES),), pool=pool) as gate:
        monkeypatch.setattr(signals, "LOOK_SECONDS", 1.0)
        for _ in range(2):
            await minute(gate, clock)
        assert budget(gate) == 40_000
        matched = await metric(gate, "llmshed_profile_match")
        for kind in ("prefill_pace", "decode_pace"):
            assert f'llmshed_profile_match{{kind="{kind}",replica="r1",state="match"}} 1.0' in matched
        slow_down(gate, 0)
        for _ in range(4):
            await minute(gate, clock)
        assert budget(gate) == 40_000
        for _ in range(2):
            await minute(gate, clock)
        assert budget(gate) == 20_000


@pytest.mark.slow
@pytest.mark.soak
@in_leaping_time
async def test_a_slower_gpu_is_refused_and_the_last_one_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = LoopClock().now
    monkeypatch.setattr(pace, "LEAST_STREAMS", ANSWERS)
    monkeypatch.setattr(replica_life, "RETRY_SECONDS", 600.0)
    pool = f'profile = "{written(tmp_path, MEASURED)}"\nlanes = ["interactive"]\non_mismatch = "refuse"'
    async with leaping_house(replicas=(of_times(TIMES), of_times(TIMES)), pool=pool) as gate:
        monkeypatch.setattr(signals, "LOOK_SECONDS", 1.0)
        await until(lambda: len(up(gate)) == 2)
        slow_down(gate, 1)
        for _ in range(7):
            await minute(gate, clock, at_once=2)
        look_at(gate, "r2")
        await until(lambda: up(gate) == {"r1"})
        await until(lambda: "decode_pace" in gate.daemon.gateway.fleet.troubles.get("r2", ""))
        slow_down(gate, 0)
        for _ in range(7):
            await minute(gate, clock)
        look_at(gate, "r1")
        await until(lambda: "replica_kept_as_last" in [record.message for record in caplog.records])
        assert (up(gate), budget(gate)) == ({"r1"}, 20_000)
