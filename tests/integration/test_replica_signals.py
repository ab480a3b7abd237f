"""Replicas that tell of themselves: truly, falsely, not at all; the budget follows, and requests are served throughout.

The governor's seconds are shortened a hundredfold or more, so that a walk down and up again takes a blink.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from fakes.door import request
from fakes.engine import Conversation, ScriptedEngine
from fakes.front import Front, with_front
from fakes.house import house, until
from fakes.signals_seen import SignalsSeen
from fakes.tgi import WordCounter, WordTgi
from llmshed.admission.controller import AdmissionController
from llmshed.admission.policy import ReplicaBudget
from llmshed.admission.settings import admission_policy
from llmshed.admission.signals import governor, stall
from llmshed.admission.signals.readings import Signal
from llmshed.clock import SystemClock
from llmshed.config.server import UpstreamSettings
from llmshed.config.settings import Config
from llmshed.emulator.metrics import TgiMetrics
from llmshed.gateway.driver import Driver
from llmshed.gateway.relay.by_scheme import UpstreamByScheme
from llmshed.gateway.replicas import life as replica_life
from llmshed.gateway.replicas import signals
from llmshed.gateway.replicas.fleet import Fleet
from llmshed.observability.metrics import UpstreamErrorKind

FULL = b"tgi_queue_size 0\ntgi_batch_current_max_tokens 100000\n"
WELL = b"tgi_queue_size 0\ntgi_batch_current_max_tokens 100\n"
SETTINGS = UpstreamSettings(signal_interval_seconds=0.002, probe_timeout_seconds=0.1)


class Telling(WordTgi):
    """A replica whose `/metrics` answers by a script."""

    def __init__(self, metrics: Callable[[Conversation], Any], **info: Any) -> None:
        super().__init__(**({"max_batch_total_tokens": 100_000, "version": "2.0.2"} | info))
        self.metrics = metrics

    async def _answer(self, conversation: Conversation) -> None:
        if conversation.asked.path == "/metrics":
            await self.metrics(conversation)
        else:
            await super()._answer(conversation)


def page(body: bytes) -> Callable[[Conversation], Any]:
    async def script(conversation: Conversation) -> None:
        await conversation.whole(body)

    return script


class Seen(SignalsSeen):
    def upstream_failed(self, replica: str, kind: UpstreamErrorKind) -> None:
        assert replica
        assert kind

    def count_compared(self, replica: str, *, equal: bool) -> None:
        assert equal, replica

    def count_mismatched(self, pool: str) -> None:
        pytest.fail(pool)


class Watched:
    """A fleet of one replica, `r1`, and what is told of it."""

    def __init__(self, upstream: UpstreamByScheme, url: str) -> None:
        self.seen = Seen()
        self.config = Config.model_validate(
            {
                "pools": [{"replicas": [{"name": "r1", "url": url}], "gross_ceiling_tokens": 100_000}],
                "upstream": SETTINGS.model_dump(),
            },
            strict=False,
        )
        clock = SystemClock()
        self.driver = Driver(AdmissionController(admission_policy(self.config)), clock)
        self.fleet = Fleet(self.driver, upstream, clock, self.seen, lambda _: WordCounter())

    @property
    def budget_tokens(self) -> int:
        (replica,) = self.driver.state().replicas
        assert replica.up
        return replica.equation.safe_budget_tokens


@asynccontextmanager
async def watched(tgi: ScriptedEngine) -> AsyncIterator[Watched]:
    async with UpstreamByScheme(SETTINGS) as upstream:
        made = Watched(upstream, tgi.url)
        try:
            made.fleet.reconcile(made.config)
            await made.fleet.until_serving()
            yield made
        finally:
            assert made.fleet.violations() == ()
            await made.fleet.close()
            made.driver.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"SHRINK_SECONDS": 0.005, "STEP_SECONDS": 0.004, "EXPIRY_SECONDS": 0.05}.items():
        monkeypatch.setattr(governor, name, seconds)
    monkeypatch.setattr(signals, "EXPIRY_SECONDS", 0.05)
    monkeypatch.setattr(signals, "LOOK_SECONDS", 0.002)
    monkeypatch.setattr(replica_life, "RETRY_SECONDS", 0.05)  # where a busy machine answers too late to be met


async def hang(conversation: Conversation) -> None:
    await conversation.peer_leaves()


async def endless(conversation: Conversation) -> None:
    await conversation.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    with suppress(ConnectionError):
        while True:
            await conversation.raw(b"tgi_queue_size 900\n" * 4096)


async def gone(conversation: Conversation) -> None:
    await conversation.whole(b"", "404 Not Found")


async def cut(conversation: Conversation) -> None:
    await conversation.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ntgi_queue_size 900\n")
    conversation.reset()


@pytest.mark.parametrize(
    "script",
    [
        gone, hang, endless, cut, page(b""), page(b"\xff" * 1000), page(b"<html>queue: full</html>"),
        page(b"tgi_queue_size 900\ntgi_queue_size 0\n"), page(b'tgi_queue_size{shard="1"} 900\n'),
    ],
    ids=["gone", "hanging", "endless", "cut", "empty", "bytes", "html", "contradicting", "labelled"],
)  # fmt: skip
async def test_a_page_that_tells_nothing_sets_a_gauge_and_no_more(script: Callable[[Conversation], Any]) -> None:
    async with Telling(script) as tgi, watched(tgi) as w:
        await until(lambda: w.seen.told)
        assert not any(w.seen.told)
        assert (w.seen.factors, w.seen.signals, w.budget_tokens) == ({"r1": 1.0}, [], 90_000)


@pytest.mark.parametrize("told", [b"NaN", b"-5", b"+Inf", b"1e300"])
async def test_numbers_that_cannot_be_true_are_counted_and_change_nothing(told: bytes) -> None:
    async with Telling(page(b"tgi_queue_size " + told)) as tgi, watched(tgi) as w:
        await until(lambda: len(w.seen.signals) > 5)
        assert set(w.seen.signals) == {Signal.ABSURD}
        assert (w.seen.factors, w.budget_tokens) == ({"r1": 1.0}, 90_000)
        assert w.seen.ages == []


async def test_a_replica_that_lies_for_ever_keeps_a_quarter_and_has_all_back_when_it_stops(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with Telling(page(FULL)) as tgi, watched(tgi) as w:
        await until(lambda: w.budget_tokens == 22_500)
        heard = len(w.seen.told)
        await until(lambda: len(w.seen.told) > heard + 20)
        assert (w.seen.factors, w.budget_tokens) == ({"r1": 0.25}, 22_500)
        assert set(w.seen.signals) == {Signal.KV}
        assert w.seen.ages
        tgi.metrics = page(WELL)
        await until(lambda: w.budget_tokens == 90_000)
        assert w.seen.factors == {"r1": 1.0}
    shrunk = [vars(record) for record in caplog.records if record.message == "replica_budget_shrunk"]
    assert [(line["factor"], line["safe_budget_tokens"]) for line in shrunk] == [
        (0.7, 63_000),
        (0.49, 44_100),
        (0.343, 30_870),
        (0.25, 22_500),
    ]
    assert shrunk[0]["causes"] == ["kv"]
    assert [record.message for record in caplog.records].count("replica_budget_restored") == 1


async def test_an_endpoint_that_dies_after_bad_news_is_forgiven() -> None:
    async with Telling(page(FULL)) as tgi, watched(tgi) as w:
        await until(lambda: w.budget_tokens == 22_500)
        tgi.metrics = gone
        await until(lambda: w.budget_tokens == 90_000)
        assert w.seen.told[-1] is False


async def test_a_replica_that_is_met_anew_under_a_signal_stays_shrunk_and_one_that_comes_back_is_whole() -> None:
    async with Telling(page(FULL)) as tgi, watched(tgi) as w:
        await until(lambda: w.budget_tokens == 22_500)
        pool = w.config.pools[0].model_copy(update={"gross_ceiling_tokens": 200_000})
        w.fleet.reconcile(w.config.model_copy(update={"pools": (pool,)}))
        await until(lambda: w.fleet.specs("main")[0].budget.gross_ceiling_tokens == 200_000)
        assert w.budget_tokens == 45_000
        w.fleet.went_down("r1", "a test")
        assert w.seen.factors == {}
        tgi.metrics = page(WELL)
        w.fleet.reconcile(w.config)
        await until(lambda: w.fleet.specs("main"))
        assert w.seen.factors == {"r1": 1.0}


async def test_never_means_never() -> None:
    async with Telling(page(FULL)) as tgi, UpstreamByScheme(SETTINGS) as upstream:
        w = Watched(upstream, tgi.url)
        never = w.config.upstream.model_copy(update={"signal_interval_seconds": 0.0})
        w.fleet.reconcile(w.config.model_copy(update={"upstream": never}))
        await w.fleet.until_serving()
        await asyncio.sleep(0.05)
        assert tgi.asked_for("/metrics") == 0
        await w.fleet.close()
        w.driver.close()


async def test_a_stall_shrinks_the_budget_and_the_next_word_lets_it_grow(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stall, "LEAST_SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(stall, "STRETCH", 0.0)
    async with Telling(page(WELL)) as tgi, watched(tgi) as w:
        w.fleet.sent("r1", request(1), 100)
        await until(lambda: w.budget_tokens == 22_500)
        assert w.seen.signals == [Signal.STALL]
        w.fleet.heard("r1", 1)
        w.fleet.ended("r1", 1)
        await until(lambda: w.budget_tokens == 90_000)
        w.fleet.sent("r1", request(2), 100)
        await until(lambda: w.budget_tokens < 90_000)
        w.fleet.failed("r1", UpstreamErrorKind.STATUS)
        w.fleet.ended("r1", 2)
        await until(lambda: w.budget_tokens == 90_000)
        w.fleet.sent("elsewhere", request(3), 100)
        w.fleet.heard("elsewhere", 3)
        w.fleet.ended("elsewhere", 3)
    assert [record.message for record in caplog.records].count("replica_stalled") == 2


async def test_a_whole_answer_without_a_ceiling_may_take_as_long_as_the_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in observe mode: at 50 ms a token, by a tenth, one of one token is late at once, the longest after seconds."""
    monkeypatch.setattr(stall, "LEAST_SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(stall, "STRETCH", 0.1)
    async with Telling(page(WELL)) as tgi, watched(tgi) as w:
        w.fleet.sent("r1", request(1, streamed=False), None)
        await asyncio.sleep(0.1)
        assert w.seen.signals == []
        w.fleet.sent("r1", request(2, streamed=False), 1)
        await until(lambda: w.seen.signals == [Signal.STALL])
        w.fleet.ended("r1", 1)
        w.fleet.ended("r1", 2)


async def test_a_queue_that_the_gateway_filled_itself_is_no_signal() -> None:
    async with Telling(page(b"tgi_queue_size 20\n")) as tgi, watched(tgi) as w:
        await until(lambda: Signal.QUEUE in w.seen.signals)
        for key in range(1, 21):
            asked = request(key, 10, 10, tenant="anonymous", model="org/model")
            await w.driver.admit(asked)
            w.fleet.sent("r1", asked, 10)
        await until(lambda: w.budget_tokens == 90_000)


@pytest.mark.slow
async def test_requests_are_served_while_a_replica_lies_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    lying = True
    honest = TgiMetrics.render
    monkeypatch.setattr(TgiMetrics, "render", lambda self: "tgi_queue_size 500\n" if lying else honest(self))
    asked = {"inputs": "hello", "parameters": {"max_new_tokens": 3}}
    async with house("[upstream]\nsignal_interval_seconds = 0.005", pool="gross_ceiling_tokens = 40_000") as home:

        async def metric(name: str) -> float:
            text = (await home.ask("GET", "/metrics", admin=True)).body.decode()
            return float(next(line for line in text.splitlines() if line.startswith(name)).rpartition(" ")[2])

        least = 1.0
        while least > 0.25:
            assert (await home.post("/generate", asked)).status == 200
            least = min(least, await metric('llmshed_replica_budget_factor{replica="r1"}'))
        for _ in range(20):
            assert (await home.post("/generate", asked)).status == 200
        assert await metric('llmshed_replica_signals_total{replica="r1",signal="queue"}') > 0
        assert await metric('llmshed_replica_metrics_up{replica="r1"}') == 1
        assert await metric('llmshed_replica_signal_age_seconds{replica="r1"}') < 10
        lying = False
        while await metric('llmshed_replica_budget_factor{replica="r1"}') < 1.0:
            assert (await home.post("/generate", asked)).status == 200


@with_front
async def test_the_relay_tells_what_runs_and_every_piece_of_it(front: Front) -> None:
    token = b'data: {"index":1,"token":{"id":5,"text":" a","logprob":-0.5,"special":false},"generated_text":null}\n\n'
    last = b'data: {"index":2,"token":{"id":2,"text":"","logprob":0.0,"special":true},"generated_text":" a"}\n\n'

    async def script(conversation: Conversation) -> None:
        await conversation.open_stream()
        for piece in (token, b":\n\n", token, last):
            await conversation.piece(piece)
            await asyncio.sleep(0.01)
        await conversation.end_stream()

    async with ScriptedEngine(script) as engine:
        front.urls["r1"] = front.urls["r2"] = engine.url
        assert (await front.post("/generate_stream", {"inputs": "hello"})).status == 200
    assert front.heard.pieces == 2  # the last event is told by the answer's end
    assert front.heard.running == set()


async def test_a_shrunk_budget_is_what_the_core_lends() -> None:
    async with Telling(page(FULL)) as tgi, watched(tgi) as w:
        await until(lambda: w.budget_tokens == 22_500)
        (spec,) = w.fleet.specs("main")
        assert spec.budget == ReplicaBudget(100_000, 0.1, 128)  # what it may ever lend stays


async def test_what_a_replica_tells_is_what_its_pools_ladder_goes_by_while_it_is_young() -> None:
    def read() -> float | None:
        (replica,) = w.driver._controller._replicas.values()
        return replica.kv_used_ratio

    async with Telling(page(FULL)) as tgi, watched(tgi) as w:
        await until(lambda: read() == 1.0)
        tgi.metrics = page(WELL)
        await until(lambda: read() == 0.001)
        tgi.metrics = gone
        await until(lambda: read() is None)
