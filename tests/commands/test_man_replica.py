"""llmshed-replica(5) names every setting of a replica file, and its example is one that is taken."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from llmshed.config.catalogue import Catalogue
from llmshed.simulation.hardware.model import ReplicaFile
from llmshed.simulation.hardware.parsing import parse_replica
from llmshed.simulation.hardware.sections import Efficiency, Engine, Gpu, Measured, Model

CATALOGUE = Catalogue(ReplicaFile)
SECTIONS: dict[str, type[BaseModel]] = {
    "model": Model,
    "gpu": Gpu,
    "efficiency": Efficiency,
    "engine": Engine,
    "measured": Measured,
}
ENTRIES = [(table, name, info) for table, model in SECTIONS.items() for name, info in model.model_fields.items()]


def words(text: str) -> str:
    """Return a text with one space between words and without the quotes that only set words apart."""
    return " ".join(re.sub("[`\u2018\u2019]", "", text).split())


def default_of(info: Any) -> str:
    if info.is_required():
        return "Required."
    told = str(info.default).lower() if isinstance(info.default, bool) else info.default
    return "Default: unset." if told is None else f"Default: {told}."


def shown_entry(page: str, table: str, name: str) -> str:
    """Return the entry of a setting from the page as it is shown."""
    _, _, section = page.partition(f"\n   [{table}]\n")
    _, _, entry = section.partition(f"\n     {name}\n")
    return re.split(r"\n {0,5}\S", entry)[0]


def test_the_page_has_every_setting_and_no_other(repository: Path) -> None:
    named, table = set(), ""
    for line in (repository / "man" / "llmshed-replica.5").read_text("utf-8").splitlines():
        if line.startswith((".Ss ", ".Sh ")):
            table = line[4:].strip("[]")
        elif line.startswith(".It Ic "):
            named.add((table, line[7:]))
    assert named == {(table, name) for table, name, _ in ENTRIES} | {("SETTINGS", "schema"), ("SETTINGS", "name")}


@pytest.mark.parametrize(
    ("table", "name", "info"), [pytest.param(*entry, id=f"{entry[0]}.{entry[1]}") for entry in ENTRIES]
)
def test_each_entry_tells_meaning_default_and_what_is_accepted(cli: Any, table: str, name: str, info: Any) -> None:
    shown = words(shown_entry(cli("man", "replica").stdout, table, name))
    assert words(info.description) in shown
    assert default_of(info) in shown
    assert words(f"Accepted: {CATALOGUE.accepted((table, name))}.") in shown


def test_the_example_describes_a_replica(repository: Path) -> None:
    page = (repository / "man" / "llmshed-replica.5").read_text("utf-8")
    example = re.findall(r'^(schema = "llmshed.replica/1"\n.*?)^\.Ed$', page, flags=re.MULTILINE | re.DOTALL)[0]
    description = parse_replica(example, "example.toml")
    assert (description.name, description.parameters.kv_tokens) == ("mistral-7b-l4", 42_000)
    assert description.derivation.kv_tokens == pytest.approx(42_000, rel=0.1)


def test_every_replica_that_ships_is_named(repository: Path) -> None:
    page = (repository / "man" / "llmshed-replica.5").read_text("utf-8")
    ships = {path.stem for path in (repository / "profiles" / "replicas").iterdir()}
    assert set(re.findall(r"^\.It Ql (\S+)$", page, flags=re.MULTILINE)) == ships
