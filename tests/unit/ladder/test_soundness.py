"""What a ladder leaves open or does in vain, and the circles of several."""

import datetime as dt

import pytest

from fakes.ladders import shipped, small
from llmshed.ladder.soundness import circles, problems, warnings

TODAY = dt.date(2026, 12, 1)  # the day on which all of these were agreed
CAP = 'action = "cap_output"; largest_quality_gap = 0.1'
STOP = 'action = "stop_bulk"'
SHED = 'action = "shed_interactive"; scope = { classes = ["low"] }'


def fields(told: list[str]) -> list[str]:
    return [sentence.split(": ")[0] for sentence in told]


class TestProblems:
    def test_a_sound_ladder_has_none(self) -> None:
        for name in ("source", "full"):
            assert list(problems(shipped(name), TODAY)) == []

    def test_an_agreement_of_the_future_is_none(self) -> None:
        yesterday = TODAY - dt.timedelta(days=1)
        assert fields(list(problems(small(STOP), yesterday))) == ["rungs[0].agreed_on"]

    def test_a_change_of_answers_needs_an_agreed_gap(self) -> None:
        (told,) = problems(small(f'{STOP}\naction = "cap_output"; max_output_tokens = 9'), TODAY)
        assert told.startswith("rungs[1].largest_quality_gap: is missing")


class TestWarnings:
    def test_an_agreement_holds_for_a_year(self) -> None:
        ladder = small(STOP)
        assert list(warnings(ladder, TODAY + dt.timedelta(days=365))) == []
        (told,) = warnings(ladder, TODAY + dt.timedelta(days=366))
        assert told == "rungs[0].agreed_on: agreed 366 days ago; to be agreed again every 365"

    def test_changed_answers_want_evaluations(self) -> None:
        assert fields(list(warnings(shipped("full"), TODAY))) == ["evaluations"]
        assert list(warnings(shipped("source"), TODAY)) == []

    def test_preempting_bulk_applies_to_nothing_yet(self) -> None:
        (told,) = warnings(small('action = "preempt_bulk"; requeue_tokens_per_minute = 9'), TODAY)
        assert "applies to nothing" in told

    @pytest.mark.parametrize(
        ("rungs", "vain"),
        [
            (f"{STOP}\n{STOP}", [1]),
            (f'{STOP}; scope = {{ classes = ["low"] }}\n{STOP}', []),
            (f'{STOP}\n{STOP}; scope = {{ tenants = ["a"] }}', [1]),
            (f'{STOP}; scope = {{ tenants = ["a"] }}\n{STOP}', []),
            (f'{STOP}; scope = {{ tenants = ["a", "b"] }}\n{STOP}; scope = {{ tenants = ["b"] }}', [1]),
            (f"{CAP}; max_output_tokens = 500\n{CAP}; max_output_tokens = 500", [1]),
            (f"{CAP}; max_output_tokens = 500\n{CAP}; max_output_tokens = 499", []),
            ('action = "shrink_context"; drop_share = 0.5\naction = "shrink_context"; drop_share = 0.4', [1]),
            ('action = "shrink_context"; drop_share = 0.5\naction = "shrink_context"; drop_share = 1', []),
        ],
    )
    def test_a_rung_that_does_no_more_than_an_earlier_one(self, rungs: str, vain: list[int]) -> None:
        told = [sentence for sentence in warnings(small(rungs), TODAY) if "changes nothing" in sentence]
        assert fields(told) == [f"rungs[{index}].action" for index in vain]

    def test_quality_is_to_be_given_up_before_availability(self) -> None:
        ladder = small(f"{STOP}\n{SHED}\n{CAP}; max_output_tokens = 9")
        assert fields([told for told in warnings(ladder, TODAY) if "availability" in told]) == ["rungs[2].action"]


class TestCircles:
    @staticmethod
    def to(*pools: str) -> str:
        return "\n".join(f'action = "smaller_model"; pool = "{pool}"' for pool in pools)

    @pytest.mark.parametrize(
        ("sends", "expected"),
        [
            ({"large": ("small",)}, ()),
            ({"large": ("small",), "small": ("tiny",)}, ()),
            ({"large": ("large",)}, (("large",),)),
            ({"large": ("small",), "small": ("large",)}, (("large", "small"),)),
            ({"c": ("a",), "a": ("b",), "b": ("c",), "d": ("a",)}, (("a", "b", "c"),)),
            ({"a": ("b", "a"), "b": ("a",)}, (("a",), ("a", "b"))),
        ],
    )
    def test_each_is_told_once_from_its_first_pool_on(
        self, sends: dict[str, tuple[str, ...]], expected: tuple[tuple[str, ...], ...]
    ) -> None:
        assert circles({pool: small(self.to(*targets)) for pool, targets in sends.items()}) == expected
