"""llmshed.toml(5) names every setting with its table, meaning, default and accepted values."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from llmshed.config.catalogue import Catalogue
from llmshed.config.paths import Path as SettingPath
from llmshed.config.paths import spelled
from llmshed.config.settings import Config
from llmshed.gateway.daemon.reload import FIXED

CATALOGUE = Catalogue(Config)


def settings(model: type[BaseModel] = Config, table: SettingPath = ()) -> list[tuple[SettingPath, Any]]:
    """Return the path and the field of every setting that is no table."""
    found = []
    for name, info in model.model_fields.items():
        path = (*table, name)
        inner = [kind for kind in (info.annotation, *getattr(info.annotation, "__args__", ())) if is_table(kind)]
        if not inner:
            found.append((path, info))
        else:
            found += settings(inner[0], path if inner[0] is info.annotation else (*path, 0))
    return found


def is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def header_of(path: SettingPath) -> str:
    name = ".".join(part for part in path[:-1] if isinstance(part, str))
    return f"[[{name}]]" if isinstance(path[-2], int) else f"[{name}]"


def words(text: str) -> str:
    """Return a text with one space between words and without the quotes that only set words apart."""
    return " ".join(re.sub("[`\u2018\u2019]", "", text).split())


def default_of(info: Any) -> str:
    value = info.default
    if info.is_required():
        return "Required."
    if value is None:
        return "Default: unset."
    if isinstance(value, bool):
        return f"Default: {str(value).lower()}."
    if isinstance(value, tuple):
        listed = ", ".join(f'"{element}"' for element in value)
        return f"Default: [{listed}]."
    return f'Default: "{value}".' if isinstance(value, str) else f"Default: {value}."


def test_the_page_has_every_setting_and_no_other(repository: Path) -> None:
    named, header = set(), ""
    for line in (repository / "man" / "llmshed.toml.5").read_text("utf-8").splitlines():
        if line.startswith((".Ss ", ".Sh ")):
            header = line[4:]
        elif line.startswith(".It Ic "):
            named.add((header, line[7:]))

    assert named == {(header_of(path), path[-1]) for path, _ in settings()}


@pytest.mark.parametrize(("path", "info"), [pytest.param(path, info, id=spelled(path)) for path, info in settings()])
def test_each_entry_tells_meaning_default_and_what_is_accepted(cli: Any, path: SettingPath, info: Any) -> None:
    shown = words(shown_entry(cli("man", "llmshed.toml").stdout, header_of(path), str(path[-1])))

    assert words(info.description) in shown
    assert default_of(info) in shown
    assert words(f"Accepted: {CATALOGUE.accepted(path)}.") in shown


def shown_entry(page: str, header: str, name: str) -> str:
    """Return the entry of a setting from the page as it is shown."""
    _, _, table = page.partition(f"\n   {header}\n")
    _, _, entry = table.partition(f"\n     {name}\n")
    return re.split(r"\n {0,5}\S", entry)[0]


def test_the_page_names_what_a_reload_leaves_as_it_is(repository: Path) -> None:
    page = (repository / "man" / "llmshed.toml.5").read_text("utf-8")
    description = page.partition(".Sh DESCRIPTION")[2].partition(".Sh SETTINGS")[0]

    assert set(re.findall(r"^\.Ic (\S+)", description, flags=re.MULTILINE)) == set(FIXED)
