"""The same traffic faster, or more of it.

In time, arrivals are divided by a factor: bursts keep their size and come quicker, and conversations hurry too. In
rate, the trace is laid over itself: the whole part of the factor is that many copies of it, the rest one more copy
thinned at random. That is what more users of the same kind would send.

The rules of a copy:

- Each but the first starts later, by a time drawn once between 0 and a minute, or a fortieth of the trace if that is
  less. Below that the copies are then independent, so that a second's count varies about its mean as in the trace;
  above, rush and lull stay where they are and scale with the factor. The traffic is thinner at first for it and lasts
  longer, by a fortieth at most, so the rate is the factor's within 2.5 %.
- Gaps inside a copy are those of the trace. The thinned copy keeps or drops a conversation whole, and a request
  without session by itself.
- Its sessions, its tenants and the ids of its prompts are its own, but for the first block of each prompt, where system
  prompts stand, and the tenant `trace`, which stands for traces that tell none. `original_tenant` leads back.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING
from zlib import crc32

from llmshed.simulation.prefixes import PromptBlocks
from llmshed.workload.request import TracedRequest

if TYPE_CHECKING:
    from random import Random

LATEST_START_SECONDS = 60.0
LATEST_START_SHARE = 1 / 40
MOST_TIMES = 1000.0
NO_TENANT = "trace"

_MARK = "~"
# Ids of a trace are below 2^64: each copy has a range of its own above.
_COPY_IDS = 1 << 64


def in_time(requests: Iterable[TracedRequest], factor: float) -> Iterator[TracedRequest]:
    """Yield the requests with their arrivals divided by `factor`.

    Raises:
        ValueError: the factor is not more than 0 and at most `MOST_TIMES`.
    """
    _check(factor)
    return (replace(request, at_seconds=request.at_seconds / factor) for request in requests)


def in_rate(
    requests: Iterable[TracedRequest], factor: float, rng: "Random", duration_seconds: float = math.inf
) -> Iterator[TracedRequest]:
    """Yield `factor` times the requests, in order of arrival.

    Memory holds the copies that wait for their start: `factor` times the requests of a minute.

    Args:
        requests: in order of arrival.
        factor: 1 gives the trace itself, 0.5 half of it, 2.5 two copies and half of a third.
        rng: what the starts and the thinning are drawn from; used before the first request only.
        duration_seconds: how long the trace lasts; without it, it is taken to last 40 minutes or more.

    Raises:
        ValueError: the factor is not more than 0 and at most `MOST_TIMES`.
    """
    _check(factor)
    latest = min(LATEST_START_SECONDS, LATEST_START_SHARE * duration_seconds)
    starts = [0.0, *(rng.uniform(0.0, latest) for _ in range(math.ceil(factor) - 1))]
    return _superposed(requests, starts, factor - (len(starts) - 1), rng.getrandbits(64))


def original_tenant(tenant: str) -> str:
    """Return the tenant of the trace that a copy's tenant was made from."""
    name, mark, copy = tenant.rpartition(_MARK)
    return name if mark and copy.isdigit() else tenant


def _check(factor: float) -> None:
    if not 0 < factor <= MOST_TIMES:
        raise ValueError(f"a scale is more than 0 and at most {MOST_TIMES:g}, not {factor}")


def _superposed(
    requests: Iterable[TracedRequest], starts: list[float], rest: float, salt: int
) -> Iterator[TracedRequest]:
    """Yield a copy for each start; of the last one only the share `rest`, which may be all of it."""
    waiting: list[tuple[float, int, int, TracedRequest]] = []
    last = len(starts) - 1
    for order, request in enumerate(requests):
        for copy, start in enumerate(starts):
            if copy < last or rest >= 1.0 or _kept(request, order, rest, salt):
                at = request.at_seconds + start
                heappush(waiting, (at, copy, order, request))
        # No copy of a later request comes before that request itself.
        while waiting and waiting[0][0] <= request.at_seconds:
            yield _copied(heappop(waiting))
    while waiting:
        yield _copied(heappop(waiting))


def _kept(request: TracedRequest, order: int, share: float, salt: int) -> bool:
    """Draw by a hash instead of the generator, so that a conversation is kept or dropped whole without a memory."""
    subject = f"{salt}/{order}" if request.session is None else f"{salt}/{request.tenant}/{request.session}"
    return _mixed(crc32(subject.encode())) < share * 2**32


def _mixed(bits: int) -> int:
    """Return 32 bits scrambled: the checksum is linear, so like names would be drawn alike."""
    bits = (bits ^ (bits >> 16)) * 0x85EBCA6B % 2**32
    bits = (bits ^ (bits >> 13)) * 0xC2B2AE35 % 2**32
    return bits ^ (bits >> 16)


def _copied(waiting: tuple[float, int, int, TracedRequest]) -> TracedRequest:
    at_seconds, copy, _, request = waiting
    if copy == 0:
        return request
    return replace(
        request,
        at_seconds=at_seconds,
        tenant=request.tenant if request.tenant == NO_TENANT else f"{request.tenant}{_MARK}{copy}",
        session=None if request.session is None else f"{request.session}{_MARK}{copy}",
        blocks=None if request.blocks is None else _own(request.blocks, copy),
    )


def _own(blocks: PromptBlocks, copy: int) -> PromptBlocks:
    shift = copy * _COPY_IDS
    return replace(blocks, ids=(*blocks.ids[:1], *(one + shift for one in blocks.ids[1:])))
