"""What a step has room for, and what a join would be called (`batching_task` of backends/v3/src/backend.rs)."""

from dataclasses import dataclass
from math import floor

from llmshed.simulation.batch import RunningBatch
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import JoinReason


@dataclass(frozen=True, slots=True)
class Room:
    """What the coming step has room for.

    Args:
        prefill_tokens: prompt tokens to work through; 0 when the queue is not looked at.
        seats: most entries that may join; None for any number.
        least: with fewer entries than this all stay where they are; 0 for any number.
        chunked: whether a prompt may be cut.
        speculated_tokens: KV tokens that each entry needs beyond input and output for guesses.
    """

    prefill_tokens: int
    seats: int | None
    least: int
    chunked: bool
    speculated_tokens: int


def room_from_idle(parameters: ReplicaParameters) -> Room:
    """Return the room of a step that nothing runs beside."""
    return _room(parameters, parameters.max_batch_prefill_tokens, parameters.max_batch_size, least=0)


def room_beside(
    parameters: ReplicaParameters, batch: RunningBatch, held_kv_tokens: int, steps_since_join: int
) -> tuple[Room, JoinReason]:
    """Return the room that a running batch leaves, and why somebody would join it.

    With chunked prefill the batch's own tokens count against the budget, and seats are not looked at. Without it a
    join pauses all that runs: so it has the whole budget, but enough have to wait for it, until enough steps have
    passed. A batch that holds as many tokens as the cache has, shared prefixes counted once for each that holds them,
    leaves none either way.

    Args:
        parameters: limits and version.
        batch: what runs.
        held_kv_tokens: room of the blocks that it holds.
        steps_since_join: steps since somebody joined it.
    """
    full = held_kv_tokens >= (parameters.usable_blocks + 1) * parameters.block_tokens
    budget = 0 if full else parameters.max_batch_prefill_tokens
    if parameters.prefills_in_pieces:
        return _room(parameters, max(budget - batch.next_tokens, 0), None, least=0), JoinReason.CHUNKING
    most = parameters.max_batch_size
    seats = None if most is None else max(most - len(batch), 0)
    if steps_since_join >= parameters.max_waiting_steps:
        return _room(parameters, budget, seats, least=0), JoinReason.WAIT_EXCEEDED
    least = floor(len(batch) * parameters.rules.waiting_served_ratio)
    return _room(parameters, budget, seats, least), JoinReason.BACKPRESSURE


def _room(parameters: ReplicaParameters, prefill_tokens: int, seats: int | None, least: int) -> Room:
    # TGI rounds the budget up to whole blocks.
    whole_blocks = -(-prefill_tokens // parameters.block_tokens)
    return Room(
        whole_blocks * parameters.block_tokens, seats, least, parameters.prefills_in_pieces, parameters.speculate
    )
