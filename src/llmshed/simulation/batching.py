"""Which waiting entries join the next step (`next_batch` of backends/v3/src/queue.rs)."""

from collections import deque
from dataclasses import dataclass

from llmshed.simulation.kv import KvBlocks
from llmshed.simulation.results import Dropped
from llmshed.simulation.sequences import Entry


@dataclass(frozen=True, slots=True)
class Joiners:
    """Entries that leave the front of the queue together, and abandoned ones that were found on the way."""

    entries: tuple[Entry, ...]
    dropped: tuple[Dropped, ...]


def take_from_front(
    queue: deque[Entry], kv: KvBlocks, prefill_budget_tokens: int, least: int, *, chunked: bool
) -> Joiners:
    """Take entries strictly from the front while their KV and the prefill budget allow it.

    The first entry that does not fit stays in front and ends the search: no smaller one passes it. An entry taken
    holds its KV and knows, in `next_prefill_tokens`, how much of its prompt the coming step works through. With
    chunked prefill the last entry is cut to what is left of the budget.

    Args:
        queue: waiting entries, oldest in front; changed.
        kv: blocks; changed.
        prefill_budget_tokens: prompt tokens that the step has room for.
        least: with fewer entries than this all stay where they are; 0 for any number.
        chunked: whether a prompt may be cut.
    """
    dropped: list[Dropped] = []
    taken: list[Entry] = []
    room = prefill_budget_tokens
    if len(queue) < least:
        return Joiners((), ())
    while queue:
        entry = queue[0]
        if entry.abandoned:
            queue.popleft()
            dropped.append(Dropped(entry.key, while_queued=True))
            continue
        piece = min(entry.input_tokens, room) if chunked else entry.input_tokens
        if piece == 0 or piece > room:
            break
        tokens = entry.input_tokens + entry.chunk_tokens - 1
        allocation = kv.allocate(entry.key, tokens, entry.sequence.blocks, entry.input_tokens)
        if allocation is None:
            break
        queue.popleft()
        entry.blocks = allocation.blocks
        entry.next_prefill_tokens = piece
        taken.append(entry)
        room -= piece
        if piece < entry.input_tokens:
            break
    if len(taken) < least:
        _put_back(queue, kv, taken)
        taken = []
    return Joiners(tuple(taken), tuple(dropped))


def _put_back(queue: deque[Entry], kv: KvBlocks, taken: list[Entry]) -> None:
    for entry in reversed(taken):
        kv.free(entry.key)
        entry.blocks = 0
        entry.next_prefill_tokens = 0
        queue.appendleft(entry)
