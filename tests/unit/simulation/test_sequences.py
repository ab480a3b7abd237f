import pytest

from llmshed.simulation.sequences import Entry, FinishReason, NaturalEnd, Sequence


@pytest.mark.parametrize(
    ("natural", "earlier", "end"),
    [
        (None, 0, 100),
        (None, 1024, 100),
        (40, 0, 40),
        (100, 0, 100),
        (400, 0, 100),
        (1064, 1024, 40),
        (0, 0, 1),
    ],
)
def test_a_chunk_ends_where_the_model_stops_or_else_at_its_ceiling(natural: int | None, earlier: int, end: int) -> None:
    natural_end = None if natural is None else NaturalEnd(natural, FinishReason.EOS)
    entry = Entry(Sequence(1, 10, natural_end=natural_end), 10, 100, 5000, 0, 0.0, earlier_tokens=earlier)
    assert entry.chunk_end_tokens == end


def test_a_prompt_is_done_once_all_of_it_is_in_the_kv() -> None:
    entry = Entry(Sequence(1, 10), 10, 100, 100, 0, 0.0, prefilled_tokens=9)
    assert entry.prefilling
    entry.prefilled_tokens = 10
    assert not entry.prefilling
