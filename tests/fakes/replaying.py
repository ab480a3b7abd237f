"""A generator before a stub: what a plan of equal requests came to."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random

from llmshed.clock import Clock, SystemClock
from llmshed.engines.registry import readable_engine
from llmshed.loadtest.client import Client
from llmshed.loadtest.meter import Meter
from llmshed.loadtest.open_loop import OpenLoop, Visit
from llmshed.loadtest.plan import Lengths, Planner, Prefixes
from llmshed.loadtest.prompts import PromptMaker
from llmshed.loadtest.wire import ChatWire, TextWire, Wire
from llmshed.tokenizing.load import find
from llmshed.workload.ceilings import CeilingRule
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest


@cache
def embedded_prompts(*, chat: bool = False, seed: int = 0) -> PromptMaker:
    """Return the maker with the embedded tokenizer, built once for all tests."""
    return PromptMaker(find("embedded"), "tgi", chat=chat, seed=seed)


def client_of(url: str, *, chat: bool = False, clock: Clock | None = None, key: str | None = None) -> Client:
    """Return a client of a server that speaks as Text Generation Inference does."""
    engine = readable_engine("tgi")
    wire: Wire = ChatWire("tgi") if chat else TextWire(engine, "tgi")
    return Client(url, engine, wire, embedded_prompts(chat=chat), clock or SystemClock(), key)


@dataclass(slots=True)
class Generated:
    """What a run came to."""

    visits: list[Visit] = field(default_factory=list)
    meter: Meter = field(default_factory=lambda: Meter(SystemClock()))

    @property
    def ttfts(self) -> list[float]:
        return [ttft for visit in self.visits if (ttft := visit.ttft_seconds) is not None]

    @property
    def itls(self) -> list[float]:
        return [gap for visit in self.visits for gap in visit.last.sample.itl_seconds]


async def generated(
    url: str, requests: Sequence[TracedRequest], *, clients: ClientModel = ClientModel.NONE, chat: bool = False
) -> Generated:
    """Send requests whose answers run to their own length, and return what came of them."""
    result = Generated()
    planner = Planner(CeilingRule.ASKED, Lengths.TRACE, Prefixes.NONE, 16, declares=False)
    async with client_of(url, chat=chat) as client:
        rng = Random(0)  # noqa: S311 - jitter of clients
        loop = OpenLoop(client, result.meter, clients, rng, result.visits.append)
        await loop.run(planner.planned(requests))
    return result


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value at a rank, as the sketches do."""
    return sorted(values)[int(share * (len(values) - 1))]
