"""The page shows what was measured of the data plane, as `bench/data/dataplane.csv` keeps it."""

from pathlib import Path

import pytest
from dataplane.figures import Figures, from_csv
from dataplane.main import ALL, KEPT, MEASURES, PAGE
from dataplane.tables import put_into


@pytest.fixture(scope="module")
def figures() -> Figures:
    return from_csv(KEPT.read_text("utf-8"))


def test_the_page_shows_the_figures_that_were_kept(figures: Figures) -> None:
    page = PAGE.read_text("utf-8")
    assert put_into(page, figures) == page


def test_every_proxy_and_every_measure_was_taken_or_it_is_said_why_not(figures: Figures) -> None:
    kept = {one.measure for one in figures.all} | {one.proxy for one in figures.all}
    assert [name for name in ALL if name not in kept] == []
    taken = {"refusals": "refused_unread"}
    assert [name for name in MEASURES if taken.get(name, name) not in kept] == []


def test_the_page_names_every_option_of_the_run(repository: Path) -> None:
    page = (repository / "docs" / "performance.md").read_text("utf-8")
    assert all(option in page for option in ("make dataplane", "--quick", "--only", "--write"))
