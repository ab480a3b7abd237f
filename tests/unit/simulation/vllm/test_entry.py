"""When and why a sequence ends, and its place by priority."""

import pytest

from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence
from llmshed.simulation.vllm.blocks import Holding
from llmshed.simulation.vllm.entry import VllmEntry


def entry(ceiling: int, natural: NaturalEnd | None = None) -> VllmEntry:
    return VllmEntry(Sequence(1, 10, ceiling, natural_end=natural, priority=3), 10, ceiling, 7, 0.0, Holding())


@pytest.mark.parametrize(
    ("ceiling", "natural", "last", "reason"),
    [
        (20, None, 20, FinishReason.LENGTH),
        (20, NaturalEnd(30, FinishReason.EOS), 20, FinishReason.LENGTH),
        (20, NaturalEnd(5, FinishReason.STOP), 5, FinishReason.STOP),
        (20, NaturalEnd(20, FinishReason.EOS), 20, FinishReason.EOS),
    ],
)
def test_the_model_stops_by_itself_or_at_its_ceiling(
    ceiling: int, natural: NaturalEnd | None, last: int, reason: FinishReason
) -> None:
    ending = entry(ceiling, natural)
    assert (ending.last_token, ending.finish_reason) == (last, reason)


def test_rank_is_priority_and_then_arrival() -> None:
    assert entry(20).rank == (3, 7)


def test_what_must_be_computed_again_is_the_prompt_and_all_output() -> None:
    resumed = entry(20)
    resumed.output_tokens = 6
    assert resumed.known_tokens == 16
