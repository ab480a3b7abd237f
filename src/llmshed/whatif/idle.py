"""What a request takes alone: the yardstick of its objectives.

A fresh model of the very replica serves the one request, so the figures are exact for whatever engine is simulated, and
depend on nothing that happened before. Prefixes are taken to be cached nowhere.
"""

from collections.abc import Callable
from dataclasses import dataclass

from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.results import Ended, Failed, FirstToken
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence


@dataclass(frozen=True, slots=True)
class IdleTimes:
    """Times of a request on a replica of its own, from its arrival there; all in seconds.

    Args:
        ttft_seconds: to the first token of its first sequence.
        total_seconds: to the end of its last sequence.
        tpot_seconds: greatest mean time per token after the first of any of its sequences; None with one token each.
        output_tokens: of all sequences together.
    """

    ttft_seconds: float
    total_seconds: float
    tpot_seconds: float | None
    output_tokens: int


def idle_times(
    build_model: Callable[[], ReplicaModel],
    input_tokens: int,
    true_output_tokens: int,
    ceiling_tokens: int | None = None,
    copies: int = 1,
) -> IdleTimes | None:
    """Return what a request takes on an idle replica; None when that replica would not serve it.

    Args:
        build_model: returns an idle replica.
        input_tokens: of each sequence.
        true_output_tokens: where each sequence stops by itself.
        ceiling_tokens: most output of each; None for the engine's own.
        copies: sequences.
    """
    if ceiling_tokens is not None and ceiling_tokens < 1:
        return None
    model = build_model()
    if not all(model.take_permit(key) for key in range(copies)):
        return None
    end = NaturalEnd(true_output_tokens, FinishReason.EOS)
    for key in range(copies):
        sequence = Sequence(key, input_tokens, asked_output_tokens=ceiling_tokens, natural_end=end)
        if not isinstance(model.submit(sequence, 0.0), OutputPlan):
            return None
    return _course(model, copies)


def _course(model: ReplicaModel, copies: int) -> IdleTimes | None:
    """Follow the sequences to their end; None when they fail or wait for ever."""
    firsts: dict[int, float] = {}
    ends: list[Ended] = []
    while len(ends) < copies:
        at = model.next_change_at
        if at is None:
            return None
        for result in model.advance(at):
            match result:
                case FirstToken(key, first_at):
                    firsts[key] = first_at
                case Ended():
                    ends.append(result)
                case Failed():
                    return None
                case _:
                    pass
    paces = [(end.at - firsts[end.key]) / (end.output_tokens - 1) for end in ends if end.output_tokens > 1]
    return IdleTimes(
        ttft_seconds=min(firsts.values()),
        total_seconds=max(end.at for end in ends),
        tpot_seconds=max(paces, default=None),
        output_tokens=sum(end.output_tokens for end in ends),
    )
