"""The page of a calibration: the answer first, then what was seen at each level."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from llmshed.rendering.calibration_page import CalibrationFigures, LevelsSeen, SweepFigures, calibration_page
from llmshed.rendering.page import render_page

LEVELS = tuple((1000.0 * step, 50, 0 if step < 90 else 5 * (step - 89)) for step in range(1, 100))
SWEEP = SweepFigures(
    name="KV cache",
    unit="reserved tokens",
    seen=(LevelsSeen("TTFT", LEVELS), LevelsSeen("TPOT", ())),
    low=88_000.0,
    point=90_500.0,
    high=93_000.0,
    allowed_ratio=0.05,
)
FIGURES = CalibrationFigures(
    summary=("The replica carries 88,000 reserved tokens.",),
    facts=(("replica", "http://127.0.0.1:3000"), ("model", "a <b> model")),
    warnings=("generator_limited: it was slow",),
    proposed=(("budget.gross_ceiling_tokens", "88,000"),),
    sweeps=(SWEEP,),
    counts={"finished": 4950, "refused": 0},
)


class Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def texts(figures: CalibrationFigures, *, drawn: bool = False) -> list[str]:
    parser = Texts()
    parser.feed(render_page(calibration_page(figures, "1.0", drawn=drawn)))
    return [text for text in parser.texts if text]


def test_the_answer_and_what_takes_from_its_worth_stand_first() -> None:
    told = texts(FIGURES)
    first = told.index("The replica carries 88,000 reserved tokens.")
    assert told.index("a <b> model") > first
    assert told.index("generator_limited: it was slow") < told.index("88,000") < told.index("KV cache")
    assert "The knee is about 90,500 reserved tokens: at least 88,000, at most 93,000." in told
    assert "llmshed 1.0" in told


def test_a_table_has_some_of_many_levels_and_says_so() -> None:
    told = texts(FIGURES)
    assert told.count("50") == 33
    assert "66 levels between these are left out." in told
    assert "TTFT, by reserved tokens" in told
    assert "TPOT, by reserved tokens" not in told


@pytest.mark.parametrize(
    ("sweep", "sentence"),
    [
        (
            replace(SWEEP, high=None),
            "The knee is about 90,500 reserved tokens: at least 88,000, no level broke, so there is no upper bound.",
        ),
        (
            replace(SWEEP, low=None, point=None, high=None),
            "No level broke an objective, or too little was seen: no knee is known.",
        ),
    ],
)
def test_a_knee_that_is_not_known_is_not_told(sweep: SweepFigures, sentence: str) -> None:
    assert sentence in texts(replace(FIGURES, sweeps=(sweep,)))


def test_a_run_without_result_has_no_section_of_the_profile() -> None:
    told = texts(replace(FIGURES, proposed=(), warnings=()))
    assert "The profile" not in told
    assert "Before you believe it" not in told
    assert {"finished", "4,950"} <= set(told)


def test_the_drawing_marks_the_knee_and_says_it_in_words() -> None:
    pytest.importorskip("matplotlib")
    told = texts(FIGURES, drawn=True)
    assert {"knee", "lower bound", "allowed", "TTFT broken", "reserved tokens", "% of requests"} <= set(told)
    empty = replace(SWEEP, seen=())
    assert "% of requests" not in texts(replace(FIGURES, sweeps=(empty,)), drawn=True)
