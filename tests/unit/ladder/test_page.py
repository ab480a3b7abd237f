"""docs/ladder.md has the transition table, its diagram, the fields of a file, signals and actions as code has them."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from llmshed.config.catalogue import Catalogue
from llmshed.config.ladders import LadderSettings
from llmshed.config.paths import spelled
from llmshed.ladder.contradictions import FIELDS
from llmshed.ladder.model import Entry, EntrySignal, Exit, Ladder, Rung, RungAction, Scope, Windowing
from llmshed.ladder.parsing import parse_ladder
from llmshed.ladder.table import TABLE, Move, Place

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "ladder.md").read_text("utf-8")

TABLES: dict[str | int, type[BaseModel]] = {
    "windows": Windowing, "rungs": Rung, "scope": Scope, "entry": Entry, "exit": Exit,
}  # fmt: skip


def transition_table() -> str:
    lines = ["| stands on | the window is | then | stands on after it |", "|---|---|---|---|"]
    for (stood, shown), (move, leads_to) in TABLE.items():
        lines.append(f"| {stood} | {shown} | {move} | {' or '.join(leads_to)} |")
    return "\n".join(lines)


def diagram() -> str:
    nodes = {one: one.name.lower() for one in Place}
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {nodes[Place.GROUND]}"]
    lines += [f'    state "{one}" as {node}' for one, node in nodes.items()]
    ways: dict[tuple[Place, Place], dict[Move, None]] = {}
    for (stood, _), (move, leads_to) in TABLE.items():
        for after in leads_to:
            ways.setdefault((stood, after), {})[move] = None
    for (stood, after), moves in ways.items():
        lines.append(f"    {nodes[stood]} --> {nodes[after]}: {' / '.join(moves)}")
    return "\n".join([*lines, "```"])


def info_of(path: tuple[str | int, ...]) -> FieldInfo:
    model: type[BaseModel] = Ladder
    for part in path[:-1]:
        model = TABLES.get(part, model)
    return next(info for name, info in model.model_fields.items() if (info.alias or name) == path[-1])


def default_of(info: FieldInfo) -> str:
    if info.is_required():
        return "needed"
    values = info.default if isinstance(info.default, tuple) else (info.default,)
    shown = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    return "unset" if info.default is None else ", ".join(f"`{value}`" for value in shown)


def field_table() -> str:
    catalogue = Catalogue(Ladder)
    lines = ["| field | accepted | default | meaning |", "|---|---|---|---|"]
    for path in catalogue.leaves():
        name, info = spelled(path).replace("[0]", "[]"), info_of(path)
        lines.append(f"| `{name}` | {catalogue.accepted(path)} | {default_of(info)} | {info.description} |")
    return "\n".join(lines)


@pytest.mark.parametrize("made", [transition_table, diagram, field_table], ids=lambda made: made.__name__)
def test_the_page_holds_what_code_says(made: Callable[[], str]) -> None:
    text = made()
    assert f"\n{text}\n" in PAGE, f"docs/ladder.md should have\n{text}"


def test_every_signal_and_every_action_has_its_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    assert [row for row in rows if row in set(EntrySignal)] == list(EntrySignal)
    assert {row for row in rows if row in set(RungAction)} == set(RungAction)


def test_fields_that_belong_to_actions_say_so() -> None:
    for action, fields in FIELDS.items():
        for field in fields:
            assert f"`{action}`" in str(Rung.model_fields[field].description), field


def test_the_example_is_a_ladder() -> None:
    blocks = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    (example,) = [block for block in blocks if block.startswith("schema = ")]
    assert parse_ladder(example, "example").label == "kv@1"
    (settings,) = [block for block in blocks if block.startswith("[ladder]")]
    assert settings.count("_file = ") == len(LadderSettings.model_fields)
