"""The open loop: everything is sent in order and never early, clients come back as theirs do, an end closes all."""

import asyncio
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.canned import Held, canned, last, stream, token, whole
from fakes.replaying import client_of, generated
from fakes.timed_stub import timed_stub
from llmshed.clock import SystemClock
from llmshed.errors import PromptError
from llmshed.loadtest.meter import Meter
from llmshed.loadtest.open_loop import OpenLoop, Visit
from llmshed.loadtest.plan import Planned
from llmshed.workload.arrivals import arrival_process
from llmshed.workload.asks import Ask, Outcome
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

SERVED = stream(token(), last(2))
BUSY = whole(429, b"{}", "retry-after-ms: 20", "x-llmshed-reason: queue_full")


def at(*instants: float) -> list[TracedRequest]:
    return [TracedRequest(instant, 20, 2) for instant in instants]


async def test_everything_is_sent_once_and_told_once() -> None:
    async with canned(SERVED) as server:
        result = await generated(server.url, at(0, 0, 0.01, 0.02))
    assert [visit.last.sample.outcome for visit in result.visits] == [Outcome.FINISHED] * 4
    assert sorted(visit.last.sample.ask.id for visit in result.visits) == ["0", "1", "2", "3"]
    assert len(server.bodies) == 4
    assert len(set(server.bodies)) == 4
    assert result.meter.doing().lateness_p99 is not None


@pytest.mark.parametrize(
    ("clients", "answers", "tries", "outcome"),
    [
        (ClientModel.NONE, (BUSY, SERVED), 1, Outcome.REFUSED),
        (ClientModel.POLITE, (BUSY, BUSY, SERVED), 3, Outcome.FINISHED),
        (ClientModel.POLITE, (b"", SERVED), 2, Outcome.FINISHED),
        (ClientModel.POLITE, (whole(413, b"{}", "x-llmshed-reason: lane_limit"), SERVED), 1, Outcome.REFUSED),
        (ClientModel.SDK, (BUSY,), 3, Outcome.REFUSED),
        (ClientModel.RUDE, (*[BUSY] * 4, SERVED), 5, Outcome.FINISHED),
        (ClientModel.RUDE, (stream(token(), token(2), cut=True), SERVED), 1, Outcome.FAILED),
    ],
)
async def test_clients_come_back_as_theirs_do(
    clients: ClientModel, answers: tuple[bytes, ...], tries: int, outcome: Outcome
) -> None:
    async with canned(*answers) as server:
        result = await generated(server.url, at(0), clients=clients)
    (visit,) = result.visits
    assert ([reply.tries for reply in visit.replies], visit.last.sample.outcome) == (list(range(tries)), outcome)
    assert len(set(server.bodies)) == 1
    counts = [f"x-stainless-retry-count: {number}" in head for number, head in enumerate(server.heads)]
    assert counts == [clients is ClientModel.SDK] * tries
    instants = [visit.planned_at, *(reply.sample.planned_at for reply in visit.replies[1:])]
    if clients is ClientModel.POLITE and answers[0] is BUSY:
        assert all(later - earlier >= 0.02 for earlier, later in pairwise(instants))


async def test_an_end_from_outside_tells_of_what_ran() -> None:
    visits: list[Visit] = []
    async with canned(SERVED, Held(stream(token(), cut=True))) as server, client_of(server.url) as client:
        loop = OpenLoop(client, Meter(SystemClock()), ClientModel.NONE, Random(0), visits.append)  # noqa: S311 - jitter
        plan = [Planned(instant, _ask(str(instant)), (), {}) for instant in (0.0, 0.02, 60.0)]
        running = asyncio.ensure_future(loop.run(iter(plan)))
        async with asyncio.timeout(10):
            while len(server.bodies) < 2:  # noqa: ASYNC110 - what is waited for is on the other side of a socket
                await asyncio.sleep(0.002)
            await asyncio.sleep(0.02)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert [visit.last.sample.outcome for visit in visits] == [Outcome.FINISHED, Outcome.CANCELLED]
    assert loop.sent == 2


async def test_a_prompt_that_cannot_be_made_ends_the_run_with_its_error() -> None:
    visits: list[Visit] = []
    async with canned(SERVED) as server, client_of(server.url) as client:
        loop = OpenLoop(client, Meter(SystemClock()), ClientModel.NONE, Random(0), visits.append)  # noqa: S311 - jitter
        with pytest.raises(PromptError, match="cannot be made"):
            await loop.run(iter([Planned(0.0, _ask("a", tokens=0), (), {})]))
    assert visits == []


def _ask(name: str, *, tokens: int = 20) -> Ask:
    return Ask(name, tokens, 2, runs_to_ceiling=False, lane=None)


PROCESSES = st.sampled_from(["constant", "poisson", "gamma:0.5", "gamma:3"])


@pytest.mark.slow
def test_requests_go_out_in_order_at_their_instants_and_never_before() -> None:
    with timed_stub("--first", "0.001", "--gap", "0.001") as stub:

        @settings(max_examples=8, deadline=None)
        @given(name=PROCESSES, rate=st.floats(50, 400), seed=st.integers(0, 2**32))
        def sent(name: str, rate: float, seed: int) -> None:
            process = arrival_process(name)
            assert process is not None
            arrivals = process.arrivals(rate, Random(seed))  # noqa: S311 - one seed, one draw
            result = asyncio.run(
                generated(stub.url, at(*(instant for instant, _ in zip(arrivals, range(25), strict=False))))
            )
            samples = [visit.last.sample for visit in result.visits]
            assert len(samples) == 25
            assert all(sample.sent_at >= sample.planned_at for sample in samples)
            by_plan = sorted(samples, key=lambda sample: (sample.planned_at, int(sample.ask.id)))
            assert [int(sample.ask.id) for sample in by_plan] == list(range(25))
            assert [sample.sent_at for sample in by_plan] == sorted(sample.sent_at for sample in samples)

        sent()
