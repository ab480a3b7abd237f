"""Which waiting entries join the next step (`next_batch` of backends/v3/src/queue.rs)."""

from collections import deque
from dataclasses import dataclass

from llmshed.simulation.kv import Kv
from llmshed.simulation.results import Dropped
from llmshed.simulation.room import Room
from llmshed.simulation.sequences import Entry


@dataclass(frozen=True, slots=True)
class Joiners:
    """What a look at the queue came to.

    Args:
        entries: those that leave the front of the queue together.
        dropped: abandoned ones that were found on the way.
        blocked: whether nothing can start before something that runs has ended or is let go.
        unsettled: whether the next look may end otherwise though nobody came or went: what was put back left its
            prompts in the prefix cache.
    """

    entries: tuple[Entry, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    blocked: bool = False
    unsettled: bool = False


def take_from_front(queue: deque[Entry], kv: Kv, room: Room) -> Joiners:
    """Take entries strictly from the front while KV, seats and the prefill budget allow it.

    The first entry that does not fit stays in front and ends the search: no smaller one passes it. An entry taken
    holds its KV and knows, in `next_prefill_tokens`, how much of its prompt the coming step works through; what the
    prefix cache has of it counts as worked through. With chunked prefill the last entry is cut to what is left of the
    budget.

    Args:
        queue: waiting entries, oldest in front; changed.
        kv: blocks; changed.
        room: what may be taken.
    """
    if room.prefill_tokens == 0 or room.seats == 0:
        # The queue is not looked at, so that nobody who left is found either.
        return Joiners(blocked=True)
    if len(queue) < room.least:
        return Joiners()
    dropped: list[Dropped] = []
    taken: list[Entry] = []
    left = room.prefill_tokens
    while queue and len(taken) != room.seats:
        entry = queue[0]
        if entry.abandoned:
            queue.popleft()
            dropped.append(Dropped(entry.key, while_queued=True))
            continue
        if not _allocate(entry, kv, room, left):
            break
        queue.popleft()
        taken.append(entry)
        left -= entry.next_prefill_tokens
        if entry.prefilled_tokens + entry.next_prefill_tokens < entry.input_tokens:
            break
    if len(taken) < room.least:
        _put_back(queue, kv, taken)
        return Joiners(dropped=tuple(dropped), unsettled=any(entry.prompt is not None for entry in taken))
    return Joiners(tuple(taken), tuple(dropped), blocked=bool(queue) and not taken)


def _allocate(entry: Entry, kv: Kv, room: Room, left_tokens: int) -> bool:
    tokens = entry.input_tokens + entry.chunk_tokens + room.speculated_tokens - 1
    allocation = kv.allocate(entry.key, tokens, entry.prompt, entry.input_tokens)
    if allocation is None:
        return False
    # A forward pass needs at least one token, though all may be cached.
    cached = min(allocation.cached_tokens, entry.input_tokens - 1)
    rest = entry.input_tokens - cached
    if rest > left_tokens and not (room.chunked and left_tokens):
        # Given back, its prompt stays in the prefix cache as if it had been worked through; so it is in TGI.
        kv.free(entry.key)
        return False
    entry.blocks = allocation.blocks
    entry.cached_tokens = entry.prefilled_tokens = cached
    entry.next_prefill_tokens = min(rest, left_tokens)
    return True


def _put_back(queue: deque[Entry], kv: Kv, taken: list[Entry]) -> None:
    for entry in reversed(taken):
        kv.free(entry.key)
        entry.blocks = entry.cached_tokens = entry.prefilled_tokens = entry.next_prefill_tokens = 0
        queue.appendleft(entry)
