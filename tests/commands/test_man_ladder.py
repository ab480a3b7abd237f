"""llmshed-ladder(5) names every setting of a ladder file, and its example is one that is sound."""

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from llmshed.config.catalogue import Catalogue
from llmshed.config.ladders import SHIPPED_LADDERS
from llmshed.errors import LadderError
from llmshed.ladder.model import Entry, EntrySignal, Exit, Ladder, Rung, RungAction, Scope, Windowing
from llmshed.ladder.parsing import parse_ladder
from llmshed.ladder.soundness import problems

CATALOGUE = Catalogue(Ladder)
TABLES: dict[str, tuple[tuple[str | int, ...], type[BaseModel]]] = {
    "SETTINGS": ((), Ladder),
    "[windows]": (("windows",), Windowing),
    "[[rungs]]": (("rungs", 0), Rung),
    "[rungs.scope]": (("rungs", 0, "scope"), Scope),
    "[rungs.entry]": (("rungs", 0, "entry"), Entry),
    "[rungs.exit]": (("rungs", 0, "exit"), Exit),
}
INNER = {"windows", "rungs", "scope", "entry", "exit"}
ENTRIES = [
    (header, (*prefix, info.alias or name), info)
    for header, (prefix, model) in TABLES.items()
    for name, info in model.model_fields.items()
    if name not in INNER or header in {"[rungs.entry]", "[rungs.exit]"}
]


def words(text: str) -> str:
    """Return a text with one space between words and without the quotes that only set words apart."""
    return " ".join(re.sub("[`\u2018\u2019]", "", text).split())


def default_of(info: Any) -> str:
    if info.is_required():
        return "Required."
    if info.default is None:
        return "Default: unset."
    if isinstance(info.default, tuple):
        listed = ", ".join(f'"{element}"' for element in info.default)
        return f"Default: [{listed}]."
    if isinstance(info.default, bool):
        return f"Default: {str(info.default).lower()}."
    return f'Default: "{info.default}".' if isinstance(info.default, str) else f"Default: {info.default}."


def shown_entry(page: str, header: str, name: str) -> str:
    """Return the entry of a setting from the page as it is shown."""
    _, _, section = page.partition(f"\n{header}\n" if header == "SETTINGS" else f"\n   {header}\n")
    _, _, entry = section.partition(f"\n     {name}\n")
    return re.split(r"\n {0,5}\S", entry)[0]


def source(repository: Path) -> str:
    return (repository / "man" / "llmshed-ladder.5").read_text("utf-8")


def test_the_page_has_every_setting_and_no_other(repository: Path) -> None:
    named, header = set(), ""
    for line in source(repository).splitlines():
        if line.startswith((".Ss ", ".Sh ")):
            header = line[4:]
        elif line.startswith(".It Ic "):
            named.add((header, line[7:]))
    assert named == {(header, path[-1]) for header, path, _ in ENTRIES}


@pytest.mark.parametrize(
    ("header", "path", "info"), [pytest.param(*entry, id=".".join(map(str, entry[1]))) for entry in ENTRIES]
)
def test_each_entry_tells_meaning_default_and_what_is_accepted(
    cli: Any, header: str, path: tuple[str | int, ...], info: Any
) -> None:
    shown = words(shown_entry(cli("man", "llmshed-ladder.5").stdout, header, str(path[-1])))
    assert words(info.description) in shown
    assert default_of(info) in shown
    assert words(f"Accepted: {CATALOGUE.accepted(path)}.") in shown


def test_every_action_signal_and_shipped_ladder_is_explained(repository: Path) -> None:
    explained = re.findall(r"^\.It Ql (\S+)$", source(repository), flags=re.MULTILINE)
    assert explained == [*SHIPPED_LADDERS, *RungAction, *EntrySignal]


def test_the_example_is_sound_and_its_mistake_is_told_as_the_page_says(repository: Path) -> None:
    page = source(repository)
    example = re.findall(r'^(schema = "llmshed.ladder/1"\n.*?)^\.Ed$', page, flags=re.MULTILINE | re.DOTALL)[0]
    ladder = parse_ladder(example, "evening.toml")
    assert not list(problems(ladder, dt.date(2026, 12, 1)))
    with pytest.raises(LadderError) as refused:
        parse_ladder(example.replace("windows = 3 }\n", "windows = 3 }\nmax_output_tokens = 5\n"), "evening.toml")
    assert str(refused.value) in page
