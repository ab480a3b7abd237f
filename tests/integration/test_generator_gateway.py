"""The generator before a whole gateway: lanes, counts, refusals and goodput are what the gateway's own log says."""

import asyncio
from collections import Counter

import pytest

from fakes.house import house
from fakes.replaying import client_of, quantile
from fakes.traces import seeded
from llmshed.admission.request import Intent
from llmshed.clock import SystemClock
from llmshed.loadtest.idle import why_busy
from llmshed.loadtest.meter import Meter
from llmshed.loadtest.open_loop import OpenLoop, Visit
from llmshed.loadtest.plan import Lengths, Planner, Prefixes
from llmshed.loadtest.tally import Tally
from llmshed.loadtest.target import Target, look_at
from llmshed.loadtest.yardstick import probed
from llmshed.workload.asks import Ask
from llmshed.workload.ceilings import CeilingRule
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest


@pytest.mark.slow
async def test_what_is_told_is_what_the_gateway_logged() -> None:
    async with house(pool="gross_ceiling_tokens = 4000") as running:
        requests = [
            TracedRequest(0.002 * number, 300, 60, intent=Intent.BULK if number % 3 == 0 else Intent.INTERACTIVE)
            for number in range(60)
        ]
        planner = Planner(CeilingRule.POW2, Lengths.MODEL, Prefixes.NONE, 16, declares=True)
        async with client_of(running.data, chat=True) as client:
            yardstick = await probed(client, 0.1, (50, 300))
            probes = 6
            tally, visits = Tally(yardstick), list[Visit]()

            def ended(visit: Visit) -> None:
                tally.add(visit)
                visits.append(visit)

            await OpenLoop(client, Meter(SystemClock()), ClientModel.NONE, seeded(), ended).run(
                planner.planned(requests)
            )
        await running.decision(lambda _: len(running.decisions) == probes + len(requests))
        logged = running.decisions[probes:]
    assert tally.miscounted == 0
    assert {line["prompt_tokens"][0] for line in logged} == {300}
    for lane, told in tally.lanes.items():
        own = [line for line in logged if line["lane"] == lane]
        assert told.visits == len(own)
        assert told.finished == sum(line["ending"] == "finished" for line in own)
        reasons = Counter(line["reason"] for line in own if line["reason"] is not None)
        assert told.refusals == reasons
        assert told.output_tokens == sum(line["output_tokens"] or 0 for line in own)
    assert set(tally.lanes) == {"interactive", "bulk"}
    assert sum(lane.refusals.total() for lane in tally.lanes.values()) > 0
    # The gateway's TTFT begins with the request's arrival there, ours with the instant at which it was due.
    ours = [ttft for visit in visits if (ttft := visit.ttft_seconds) is not None]
    its = [line["ttft_seconds"] for line in logged if line["ttft_seconds"] is not None]
    assert quantile(ours, 0.5) >= quantile(its, 0.5)


@pytest.mark.slow
async def test_a_gateway_and_a_replica_are_told_apart_and_an_idle_one_from_one_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("llmshed.loadtest.idle.WATCHED_SECONDS", 0.05)
    async with house() as running:
        model = running.daemon.gateway.policy.pools[0].model
        assert await look_at(running.data, None) == Target(is_gateway=True, model=model)
        replica = running.urls[0]
        assert (await look_at(replica, None)).is_gateway is False
        async with client_of(replica) as client:
            own, counted = await client.counted_text("tgi")
            assert own == counted
            await running.post("/v1/completions", {"model": model, "prompt": "a", "max_tokens": 2})
            assert await why_busy(client) is None
            first = asyncio.Event()
            ask = Ask("long", 20, 4000, runs_to_ceiling=False, lane=None)
            other = asyncio.ensure_future(client.send(ask, first.set))
            await first.wait()
            assert await why_busy(client) == "requests that run there: 1"
            other.cancel()
            await asyncio.gather(other, return_exceptions=True)
