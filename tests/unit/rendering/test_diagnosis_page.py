"""The page of a diagnosis: what was found and what to change stand first, and nothing from outside becomes markup."""

from collections.abc import Mapping
from html.parser import HTMLParser
from random import Random

import pytest

from fakes.incident import CALM, SUFFERING, staged
from llmshed.diagnosis.diagnose import Diagnosis, diagnose
from llmshed.rendering.diagnosis_page import diagnosis_page
from llmshed.rendering.page import render_page

LOSS = {**SUFFERING, "replicas_up": 0.5, "refused_for_tokens": 0.9, "lent": 0.98, "stale_rungs": 2.0}
HOSTILE = "http://<script>alert(1)</script>"


class Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def found(changes: Mapping[str, float]) -> Diagnosis:
    return diagnose(staged(changes), Random(0).randrange)  # noqa: S311 - a bootstrap's draws


def read(told: Diagnosis, *, drawn: bool = False) -> Texts:
    page = diagnosis_page(told, "Overload: so it is.", (("Prometheus", HOSTILE),), "1.0", drawn=drawn)
    parser = Texts()
    parser.feed(render_page(page))
    return parser


def test_finding_cause_and_change_stand_before_the_signals() -> None:
    told = read(found(LOSS)).texts
    places = [
        told.index(text)
        for text in (
            "Overload: so it is.",
            "Cause: replica loss.",
            "Warnings",
            "Change one thing",
            "1. Tokenization and classification: not looked at",
            "Signals of arrivals",
            "Signals of queues",
            "Signals of engine",
        )
        if text in told
    ]
    assert places == sorted(places)
    assert len(places) >= 7
    assert any(text.startswith("Watch: replicas_up") for text in told)


def test_a_calm_system_has_no_cause_and_all_signals() -> None:
    told = read(found(CALM))
    assert not any(text.startswith(("Cause", "Change one thing")) for text in told.texts)
    assert "table" in told.tags


def test_what_comes_from_outside_is_text() -> None:
    told = read(found(LOSS))
    assert HOSTILE in told.texts
    assert "script" not in told.tags


def test_each_signal_that_was_read_is_drawn_and_its_departure_marked() -> None:
    pytest.importorskip("matplotlib")
    diagnosis = found(LOSS)
    drawn = [one for one in diagnosis.readings if one.value is not None and one.track is not None]
    told = read(diagnosis, drawn=True)
    assert told.tags.count("svg") == len(drawn) > 3
    assert sum("departed" in text and text.endswith("UTC.") for text in told.texts) == sum(
        one.departure is not None for one in drawn
    )
