"""Every mistake at once: single settings, and the rules between those that are sound."""

from collections.abc import Iterator
from typing import Annotated, Self

from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, model_validator

from llmshed.config.base import Settings
from llmshed.config.validation import Mistake, Remark, refuse_contradictions, validated

Small = Annotated[int, Field(ge=0, le=9)]


class Pair(Settings):
    low: Small
    high: Small = 9


class Pairs(Settings):
    pairs: tuple[Pair, ...] = ()
    title: str = "t"

    @model_validator(mode="after")
    def _agree(self) -> Self:
        refuse_contradictions(self._remarks())
        return self

    def _remarks(self) -> Iterator[Remark]:
        for index, pair in enumerate(self.pairs):
            if pair.low > pair.high:
                yield Remark((("pairs", index, "low"), ("pairs", index, "high")), "is above")


STAND_INS = {"low": 0}


def test_of_very_many_mistakes_the_rest_is_counted() -> None:
    value, mistakes = validated(Pairs, {f"k{number}": 1 for number in range(10_000)}, STAND_INS)
    assert value is None
    assert len(mistakes) == 201
    assert mistakes[-1] == Mistake(
        ("k200",), "is refused, and with it 9799 more, which are told once the others are mended"
    )


def test_a_sound_value_has_no_mistakes() -> None:
    value, mistakes = validated(Pairs, {"pairs": [{"low": 1}]}, STAND_INS)

    assert value == Pairs(pairs=(Pair(low=1),))
    assert mistakes == ()


def test_the_raw_data_is_left_as_it_was() -> None:
    raw = {"pairs": [{"low": "x", "high": 1}], "no": 1}

    validated(Pairs, raw, STAND_INS)

    assert raw == {"pairs": [{"low": "x", "high": 1}], "no": 1}


def test_faulty_elements_are_not_told_again_as_a_list_that_is_too_short() -> None:
    class Needy(Settings):
        pairs: Annotated[tuple[Pair, ...], Field(min_length=1)]

    _, mistakes = validated(Needy, {"pairs": [{"low": 10}]}, STAND_INS)
    assert [mistake.path for mistake in mistakes] == [("pairs", 0, "low")]

    _, mistakes = validated(Needy, {"pairs": []}, STAND_INS)
    assert [mistake.path for mistake in mistakes] == [("pairs",)]


def test_a_missing_setting_does_not_hide_a_contradiction_elsewhere() -> None:
    _, mistakes = validated(Pairs, {"pairs": [{"high": 1}, {"low": 5, "high": 4}], "title": 3}, STAND_INS)

    assert {mistake.path for mistake in mistakes} == {("pairs", 0, "low"), ("title",), ("pairs", 1, "low")}
    assert Mistake(("pairs", 1, "low"), "is above") in mistakes


@given(st.lists(st.tuples(st.integers(-2, 11), st.integers(-2, 11)), max_size=6))
def test_every_fault_and_every_contradiction_between_sound_settings_is_told_and_nothing_else(
    pairs: list[tuple[int, int]],
) -> None:
    raw = {"pairs": [{"low": low, "high": high} for low, high in pairs]}
    expected = set()
    for index, (low, high) in enumerate(pairs):
        faulty = {name for name, value in (("low", low), ("high", high)) if not 0 <= value <= 9}
        expected |= {("pairs", index, name) for name in faulty}
        if not faulty and low > high:
            expected.add(("pairs", index, "low"))

    value, mistakes = validated(Pairs, raw, STAND_INS)

    assert {mistake.path for mistake in mistakes} == expected
    assert (value is None) == bool(expected)
