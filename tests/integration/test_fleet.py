"""Replicas come up, are watched, go down and come back; the core and the handlers follow."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fakes.engine import free_port
from fakes.signals_seen import SignalsSeen
from fakes.tgi import WordCounter, WordTgi
from llmshed.admission.controller import AdmissionController
from llmshed.admission.reasons import Reason
from llmshed.admission.settings import ANONYMOUS, admission_policy
from llmshed.clock import SystemClock
from llmshed.config.server import UpstreamSettings
from llmshed.config.settings import Config
from llmshed.errors import ProfileError, TokenizerError
from llmshed.gateway.driver import Driver
from llmshed.gateway.relay.by_scheme import UpstreamByScheme
from llmshed.gateway.replicas import life as replica_life
from llmshed.gateway.replicas.fleet import Fleet
from llmshed.gateway.replicas.pool_tools import CounterRecipe
from llmshed.observability.metrics import UpstreamErrorKind
from llmshed.tokenizing.base import PromptCounter
from llmshed.tokenizing.probes import PROBES

FAST = UpstreamSettings(probe_interval_seconds=0.02, probe_timeout_seconds=0.3)


class Counted(SignalsSeen):
    """What the observer was told."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[tuple[str, UpstreamErrorKind]] = []
        self.mismatches = 0

    def upstream_failed(self, replica: str, kind: UpstreamErrorKind) -> None:
        self.failures.append((replica, kind))

    def count_compared(self, replica: str, *, equal: bool) -> None:
        assert equal, replica

    def count_mismatched(self, pool: str) -> None:
        assert pool
        self.mismatches += 1


class House:
    """A fleet with its driver and what is told of it."""

    def __init__(self, upstream: UpstreamByScheme, load: Callable[[CounterRecipe], PromptCounter]) -> None:
        self.loaded: list[CounterRecipe] = []

        def loading(recipe: CounterRecipe) -> PromptCounter:
            self.loaded.append(recipe)
            return load(recipe)

        clock = SystemClock()
        self.observer = Counted()
        empty = config({"r1": "http://127.0.0.1:1"})
        self.driver = Driver(AdmissionController(admission_policy(empty)), clock)
        self.fleet = Fleet(self.driver, upstream, clock, self.observer, loading)

    def up(self) -> dict[str, bool]:
        return {replica.name: replica.up for replica in self.driver.state().replicas}


def config(replicas: dict[str, str], **pool: Any) -> Config:
    given = {"replicas": [{"name": name, "url": url} for name, url in replicas.items()]} | pool
    return Config.model_validate({"pools": [given], "upstream": FAST.model_dump()}, strict=False)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_life, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(replica_life, "SUSPICION_SECONDS", 0.01)


@asynccontextmanager
async def house(load: Callable[[CounterRecipe], PromptCounter] = lambda _: WordCounter()) -> AsyncIterator[House]:
    async with UpstreamByScheme(FAST) as upstream:
        made = House(upstream, load)
        try:
            yield made
        finally:
            await made.fleet.close()
            made.driver.close()
            assert made.driver.violations() == ()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for is on the other side of a socket
            await asyncio.sleep(0.002)


async def test_a_replica_comes_up_with_what_it_told() -> None:
    async with WordTgi() as tgi, house() as h:
        assert h.driver.gate(ANONYMOUS) is not None
        h.fleet.reconcile(config({"r1": tgi.url}))
        await h.fleet.until_serving()
        assert h.up() == {"r1": True}
        assert h.driver.gate(ANONYMOUS) is None
        assert h.fleet.model_ids == {"main": "org/model"}
        assert h.driver.policy.pools[0].model == "org/model"
        (spec,) = h.fleet.specs("main")
        assert (spec.profile, spec.budget.hard_cap_sequences) == ("uncalibrated", 128)
        assert (spec.limits.max_total_tokens, spec.overrun_chunk_tokens) == (4096, 1024)
        assert spec.budget.safe_budget_tokens == 4096
        assert h.fleet.url("r1") == tgi.url
        assert h.fleet.engine_of("r1") is h.fleet.engine("main")
        told = h.fleet.info("main")
        assert told is not None
        assert told.version == "3.3.5"
        assert isinstance(h.fleet.counter("main"), WordCounter)
        assert [recipe.place for recipe in h.loaded] == ["org/model"]
        assert h.observer.mismatches == 0


async def test_a_replica_that_starts_later_is_waited_for() -> None:
    port = free_port()
    async with house() as h:
        h.fleet.reconcile(config({"r1": f"http://127.0.0.1:{port}"}))
        await until(lambda: h.fleet.troubles)
        assert "cannot be reached" in h.fleet.troubles["r1"]
        assert h.up() == {}
        with pytest.raises(TokenizerError, match="not loaded yet"):
            h.fleet.counter("main")
        with pytest.raises(KeyError):
            h.fleet.url("r1")
        assert h.fleet.engine("main").name == "tgi"
        tgi = WordTgi()
        server = await asyncio.start_server(tgi._accept, "127.0.0.1", port)
        tgi._server = server
        await h.fleet.until_serving()
        assert h.fleet.troubles == {}
        await tgi.__aexit__()


@pytest.mark.parametrize("info", [{"version": 3}, {"model_id": None}, {"max_total_tokens": "8k"}])
async def test_another_server_on_the_address_is_told_apart(info: dict[str, Any]) -> None:
    async with WordTgi(**info) as tgi, house() as h:
        h.fleet.reconcile(config({"r1": tgi.url}))
        await until(lambda: h.fleet.troubles)
        assert "/info" in h.fleet.troubles["r1"]


async def test_a_dead_replica_goes_down_and_comes_back_with_new_numbers() -> None:
    async with house() as h:
        async with WordTgi() as tgi:
            port = int(tgi.url.rpartition(":")[2])
            h.fleet.reconcile(config({"r1": tgi.url}))
            await h.fleet.until_serving()
        await until(lambda: h.up() == {"r1": False})
        refusal = h.driver.gate(ANONYMOUS)
        assert refusal is not None
        assert refusal.reason is Reason.NO_REPLICA
        assert h.fleet.specs("main") == ()
        assert h.fleet.url("r1")
        tgi = WordTgi(max_total_tokens=8192, max_input_tokens=8191)
        tgi._server = await asyncio.start_server(tgi._accept, "127.0.0.1", port)
        await until(lambda: h.up() == {"r1": True})
        assert h.fleet.specs("main")[0].limits.max_total_tokens == 8192
        assert len(h.loaded) == 1
        await tgi.__aexit__()


async def test_a_busy_replica_that_answers_no_probe_stays() -> None:
    async with WordTgi() as tgi, house() as h:
        h.fleet.reconcile(config({"r1": tgi.url}))
        await h.fleet.until_serving()
        tgi.health_answers.clear()
        await until(lambda: tgi.asked_for("/health") >= 4)
        assert h.up() == {"r1": True}
        tgi.health_answers.set()


async def test_live_traffic_spares_the_probes() -> None:
    async with WordTgi() as tgi, house() as h:
        h.fleet.reconcile(config({"r1": tgi.url}))
        await h.fleet.until_serving()
        before = tgi.asked_for("/health")
        for _ in range(50):
            h.fleet.answered("r1")
            await asyncio.sleep(0.004)
        assert tgi.asked_for("/health") - before <= 1


async def test_an_ill_replica_goes_unless_it_is_the_last() -> None:
    async with WordTgi() as one, WordTgi() as two, house() as h:
        h.fleet.reconcile(config({"r1": one.url, "r2": two.url}))
        await until(lambda: h.up() == {"r1": True, "r2": True})
        one.health = two.health = "503 Service Unavailable"
        await until(lambda: sorted(h.up().values()) == [False, True])
        asked = one.asked_for("/health") + two.asked_for("/health")
        await until(lambda: one.asked_for("/health") + two.asked_for("/health") > asked + 8)
        assert True in h.up().values()


async def test_failures_of_live_traffic_are_counted_and_have_the_replica_probed() -> None:
    patient = FAST.model_copy(update={"probe_interval_seconds": 60.0})
    async with WordTgi() as tgi, house() as h:
        h.fleet.reconcile(config({"r1": tgi.url}).model_copy(update={"upstream": patient}))
        await h.fleet.until_serving()
        h.fleet.failed("r1", UpstreamErrorKind.BUSY)
        h.fleet.failed("r1", UpstreamErrorKind.IDLE_TIMEOUT)
        await asyncio.sleep(0.05)
        assert tgi.asked_for("/health") == 0
        h.fleet.failed("r1", UpstreamErrorKind.NOT_SENT)
        await until(lambda: tgi.asked_for("/health") == 1)
        assert h.up() == {"r1": True}
        assert [kind for _, kind in h.observer.failures] == ["busy", "idle_timeout", "not_sent"]
        h.fleet.failed("gone", UpstreamErrorKind.LOST)


async def test_counts_that_differ_keep_a_replica_out(caplog: pytest.LogCaptureFixture) -> None:
    async with WordTgi() as tgi, house(lambda _: WordCounter(1)) as h:
        h.fleet.reconcile(config({"r1": tgi.url}))
        await until(lambda: h.fleet.troubles)
        assert h.up() == {}
        assert h.observer.mismatches == len(PROBES)
        every = f"{len(PROBES)} of {len(PROBES)}"
        with pytest.raises(TokenizerError, match=f"{every} probes differ; words: 11 tokens here, 10 tokens by"):
            h.fleet.counter("main")
        assert "replica_not_usable" in caplog.text


async def test_a_replica_that_asks_for_a_key_gets_no_work_and_says_so() -> None:
    async with WordTgi() as tgi, house(lambda _: WordCounter()) as h:
        tgi.asks_for_a_key = True
        h.fleet.reconcile(config({"r1": tgi.url}))
        await until(lambda: h.fleet.troubles)
        assert h.up() == {}
        assert "start the engine without --api-key" in h.fleet.troubles["r1"]


@pytest.mark.parametrize(("action", "share"), [("derate", 0.5), ("warn", 1.0)])
async def test_counts_that_differ_derate_or_warn_as_the_pool_says(
    action: str, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    async with WordTgi() as tgi, house(lambda _: WordCounter(1)) as h:
        h.fleet.reconcile(config({"r1": tgi.url}, on_count_mismatch=action, gross_ceiling_tokens=10_000))
        await h.fleet.until_serving()
        assert h.fleet.specs("main")[0].budget.gross_ceiling_tokens == 10_000 * share
        assert h.observer.mismatches == len(PROBES)
        assert "counts_differ" in caplog.text


async def test_an_engine_without_counting_routes_is_used_unverified(caplog: pytest.LogCaptureFixture) -> None:
    async with WordTgi() as tgi, house() as h:
        tgi.counts = False
        h.fleet.reconcile(config({"r1": tgi.url}))
        await h.fleet.until_serving()
        assert "counts_unverified" in caplog.text


async def test_a_tokenizer_that_cannot_be_loaded_is_tried_again() -> None:
    tries = 0

    def load(_: CounterRecipe) -> PromptCounter:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise TokenizerError("the hub cannot be reached")
        return WordCounter()

    async with WordTgi() as tgi, house(load) as h:
        h.fleet.reconcile(config({"r1": tgi.url}))
        await until(lambda: h.fleet.troubles)
        with pytest.raises(TokenizerError, match="the hub cannot be reached"):
            h.fleet.counter("main")
        await h.fleet.until_serving()
        assert tries == 3


async def test_a_bug_in_meeting_a_replica_keeps_it_out_only_until_it_is_met_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tries = 0

    def load(_: CounterRecipe) -> PromptCounter:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise RuntimeError("a surprise")
        return WordCounter()

    async with WordTgi() as tgi, house(load) as h:
        h.fleet.reconcile(config({"r1": tgi.url}))
        await h.fleet.until_serving()
        assert h.up() == {"r1": True}
    assert tries == 3
    assert [record.message for record in caplog.records].count("meeting_crashed") == 2


async def test_a_hard_cap_above_the_engines_permits_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with WordTgi(max_concurrent_requests=8) as tgi, house() as h:
        h.fleet.reconcile(config({"r1": tgi.url}, max_concurrent_sequences=64))
        await h.fleet.until_serving()
    told = [vars(record).get("detail", "") for record in caplog.records]
    assert any("max_concurrent_requests is 8" in sentence for sentence in told)
    assert any("uncalibrated" in sentence for sentence in told)


async def test_a_replica_of_another_model_may_not_join_the_pool() -> None:
    async with WordTgi() as one, WordTgi(model_id="org/other") as two, house() as h:
        h.fleet.reconcile(config({"r1": one.url}))
        await h.fleet.until_serving()
        h.fleet.reconcile(config({"r1": one.url, "r2": two.url}))
        await until(lambda: h.fleet.troubles)
        assert "org/other" in h.fleet.troubles["r2"]
        assert h.up() == {"r1": True}


async def test_a_reload_adds_and_removes_replicas_and_leaves_the_others_alone() -> None:
    async with WordTgi() as one, WordTgi() as two, house() as h:
        h.fleet.reconcile(config({"r1": one.url}))
        await h.fleet.until_serving()
        asked = one.asked_for("/info")
        h.fleet.reconcile(config({"r1": one.url, "r2": two.url}))
        await until(lambda: h.up() == {"r1": True, "r2": True})
        h.fleet.reconcile(config({"r2": two.url}))
        assert h.up() == {"r2": True}
        with pytest.raises(KeyError):
            h.fleet.url("r1")
        with pytest.raises(KeyError):
            h.fleet.engine("elsewhere")
        assert one.asked_for("/info") == asked
        assert len(h.loaded) == 1


async def test_a_reload_changes_numbers_while_the_replica_serves_on() -> None:
    async with WordTgi() as tgi, house() as h:
        h.fleet.reconcile(config({"r1": tgi.url}, gross_ceiling_tokens=10_000))
        await h.fleet.until_serving()
        h.fleet.reconcile(config({"r1": tgi.url}, gross_ceiling_tokens=20_000))
        assert h.up() == {"r1": True}
        await until(lambda: h.fleet.specs("main")[0].budget.gross_ceiling_tokens == 20_000)
        assert len(h.loaded) == 1


async def test_a_reload_that_names_a_bad_tokenizer_keeps_the_old_one_at_work() -> None:
    def load(recipe: CounterRecipe) -> PromptCounter:
        if recipe.place == "bad":
            raise TokenizerError("no tokenizer at 'bad'")
        return WordCounter()

    async with WordTgi() as tgi, house(load) as h:
        h.fleet.reconcile(config({"r1": tgi.url}))
        await h.fleet.until_serving()
        h.fleet.reconcile(config({"r1": tgi.url}, tokenizer="bad"))
        await until(lambda: h.fleet.troubles)
        assert h.up() == {"r1": True}
        assert isinstance(h.fleet.counter("main"), WordCounter)
        h.fleet.reconcile(config({"r1": tgi.url}))
        await until(lambda: not h.fleet.troubles)


async def test_a_replica_that_changes_its_model_under_us_is_met_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_life, "INFO_SECONDS", 0.05)
    async with WordTgi() as tgi, house() as h:
        h.fleet.reconcile(config({"r1": tgi.url}))
        await h.fleet.until_serving()
        tgi.info["model_id"] = "org/newer"
        await until(lambda: h.fleet.model_ids == {"main": "org/newer"})
        assert [recipe.place for recipe in h.loaded] == ["org/model", "org/newer"]
        assert h.up() == {"r1": True}


async def test_a_bad_profile_changes_nothing(tmp_path: Path) -> None:
    bad = tmp_path / "profile.toml"
    bad.write_text("schema = 3")
    async with WordTgi() as tgi, house() as h:
        h.fleet.reconcile(config({"r1": tgi.url}))
        await h.fleet.until_serving()
        with pytest.raises(ProfileError):
            h.fleet.reconcile(config({"r9": tgi.url}, profile=str(bad)))
        assert h.up() == {"r1": True}
        assert h.fleet.url("r1") == tgi.url
