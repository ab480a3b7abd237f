"""Every question of a review can be asked: Prometheus parses it, and the gateway exports what it names."""

import re
from pathlib import Path

import pytest

from fakes.promtool import check_queries, exported, names_in, needs_promtool
from llmshed.review.questions import QUESTIONS, written


@needs_promtool
@pytest.mark.parametrize("selector", ["", 'job="llmshed",site=~"a|b"'])
def test_prometheus_parses_every_query(selector: str, tmp_path: Path) -> None:
    queries = [written(question, 604_800, 604, selector) for question in QUESTIONS]
    assert not [query for query in queries if "$" in query]
    check_queries(queries, tmp_path)


def test_every_metric_is_exported() -> None:
    named = {name for question in QUESTIONS for name in names_in(question.query)}
    assert len(named) > 12
    assert named <= exported()


def test_a_selector_stands_at_every_series() -> None:
    for question in QUESTIONS:
        own = re.findall(r"llmshed_\w+(?:\{([^}]*)\})?", written(question, 3600, 15, 'job="llmshed"'))
        assert own, question.name
        assert all('job="llmshed"' in matchers for matchers in own), question.name


def test_rows_are_told_apart_by_labels_that_the_query_keeps() -> None:
    for question in QUESTIONS:
        assert all(re.search(rf"by \([^)]*\b{label}\b", question.query) for label in question.labels), question.name
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS)
