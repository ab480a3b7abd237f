"""The first run: a simulated replica in this process, counted with the embedded tokenizer."""

import asyncio

import pytest

from fakes.signals_seen import SignalsSeen
from llmshed.admission.controller import AdmissionController
from llmshed.admission.policy import UNCALIBRATED
from llmshed.admission.settings import admission_policy
from llmshed.clock import SystemClock
from llmshed.config.server import UpstreamSettings
from llmshed.config.settings import Config
from llmshed.gateway.driver import Driver
from llmshed.gateway.relay.by_scheme import UpstreamByScheme
from llmshed.gateway.relay.upstream import ask
from llmshed.gateway.replicas.fleet import Fleet
from llmshed.gateway.replicas.pool_tools import SIMULATED_MODEL, counter_loader
from llmshed.observability.metrics import UpstreamErrorKind
from llmshed.tokenizing.prompts import TextPrompt


class Mismatches(SignalsSeen):
    """Counts what the self-check reports."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def upstream_failed(self, replica: str, kind: UpstreamErrorKind) -> None:
        pytest.fail(f"{replica}: {kind}")

    def count_compared(self, replica: str, *, equal: bool) -> None:
        assert equal, replica

    def count_mismatched(self, pool: str) -> None:
        assert pool
        self.seen += 1


async def test_a_simulated_replica_comes_up_and_counts_as_the_gateway_does() -> None:
    config = Config.model_validate({"pools": [{"replicas": [{"name": "sim", "url": "simulated:"}]}]}, strict=False)
    clock = SystemClock()
    driver = Driver(AdmissionController(admission_policy(config)), clock)
    told = Mismatches()
    async with UpstreamByScheme(UpstreamSettings()) as upstream:
        fleet = Fleet(driver, upstream, clock, told, counter_loader(b"k" * 32, lambda: None))
        try:
            fleet.reconcile(config)
            async with asyncio.timeout(30):
                await fleet.until_serving()
            assert fleet.troubles == {}
            assert told.seen == 0
            assert fleet.specs("main")[0].profile != UNCALIBRATED
            assert fleet.model_ids == {"main": SIMULATED_MODEL}
            assert fleet.counter("main").count(TextPrompt("hello world")).tokens > 0
            url = fleet.url("sim")
            body = b'{"inputs":"hello","parameters":{"max_new_tokens":3}}'
            assert (await ask(upstream, url + "/generate", body, 30.0))[0] == 200
            removed = Config.model_validate(
                {"pools": [{"replicas": [{"name": "other", "url": "simulated:"}]}]}, strict=False
            )
            fleet.reconcile(removed)
            async with asyncio.timeout(30):
                while "other" not in {r.name for r in driver.state().replicas if r.up}:  # noqa: ASYNC110 - the core is pure
                    await asyncio.sleep(0.01)
            assert {replica.name for replica in driver.state().replicas} == {"other"}
        finally:
            await fleet.close()
            driver.close()
