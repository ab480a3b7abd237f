"""docs/clients.md holds the rows that the tests run, figure by figure."""

import re
from pathlib import Path

import pytest

from fakes.clients_table import CLIENTS, COLUMNS, Told
from llmshed.admission.reasons import Reason


@pytest.fixture
def page(repository: Path) -> str:
    return (repository / "docs" / "clients.md").read_text()


def table(page: str, title: str) -> list[list[str]]:
    """Return the rows of a section's table, its head first."""
    sections = re.split(r"^## (.*)\n", page, flags=re.MULTILINE)
    text = dict(zip(sections[1::2], sections[2::2], strict=True))[title]
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def known_by(column: int | Reason) -> tuple[int | Reason, ...]:
    return (column, column.row.status) if isinstance(column, Reason) else (column,)


def test_the_page_tells_the_tries_of_every_client(page: str) -> None:
    told = [[row.name, *(str(row.tries.get(told, 1)) for told in Told)] for row in CLIENTS]
    assert table(page, "How often they send a request") == [["client", *(told.value for told in Told)], *told]


def test_the_page_tells_what_every_client_raises(page: str) -> None:
    rows = [row for row in CLIENTS if row.raises != {0: "StatusError"}]  # urllib3 raises nothing
    told = [[row.name, *(f"`{row.raised(*known_by(column))}`" for _, column in COLUMNS)] for row in rows]
    assert table(page, "What the user sees") == [["client", *(title for title, _ in COLUMNS)], *told]


def test_the_page_names_the_versions_that_are_run(page: str) -> None:
    pinned = {package for row in CLIENTS for environment in row.environments for package in environment.packages}
    assert pinned
    for package in pinned:
        name, _, version = package.replace("@", "==").partition("==")
        assert re.search(rf"{re.escape(name)}[^|\n]* {re.escape(version)}\b", page), package
