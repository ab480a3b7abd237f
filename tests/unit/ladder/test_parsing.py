"""A ladder is read whole, or refused with every mistake."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from llmshed.config.base import Settings
from llmshed.config.catalogue import Catalogue
from llmshed.errors import ExitCode, LadderError
from llmshed.ladder.model import Entry, Exit, Ladder, Rung, Scope, Windowing
from llmshed.ladder.parsing import STAND_INS, parse_ladder

SMALLEST = """\
schema = "llmshed.ladder/1"
name = "small"
version = "1"
[[rungs]]
name = "stop-bulk"
action = "stop_bulk"
owner = "on-call"
agreed_on = 2026-12-01
"""


def mistakes_of(text: str) -> list[str]:
    with pytest.raises(LadderError) as refused:
        parse_ladder(text, "l.toml")
    return str(refused.value).splitlines()


def test_the_smallest_ladder_has_the_documented_defaults() -> None:
    ladder = parse_ladder(SMALLEST, "l.toml")

    assert ladder.label == "small@1"
    assert (ladder.rung_number("stop-bulk"), ladder.rung_number("other")) == (1, None)
    windows, (rung,) = ladder.windows, ladder.rungs
    assert (windows.window_seconds, windows.sample_minimum, windows.objective_seconds) == (60.0, 20, None)
    assert (windows.reentry_windows, windows.most_exit_windows, windows.descend_needs_room) == (10, 40, True)
    assert (rung.entry.signal, rung.entry.above, rung.entry.windows) == ("queue_delay_seconds", None, 2)
    assert (rung.exit.below_ratio, rung.exit.windows) == (0.7, 5)
    assert (rung.agreed_on, rung.scope.tenants, len(rung.scope.classes)) == (date(2026, 12, 1), None, 3)


def test_every_field_is_read() -> None:
    text = """\
evaluations = "drill.json"
[windows]
window_seconds = 30
sample_minimum = 5
objective_seconds = 1.5
reentry_windows = 4
most_exit_windows = 20
descend_needs_room = false
[[rungs]]
name = "less"
action = "cap_output"
owner = "product"
agreed_on = 2026-11-30
largest_quality_gap = 0.1
max_output_tokens = 300
scope = { classes = ["low"], tenants = ["acme"] }
entry = { signal = "kv_used_ratio", above = 0.9, windows = 3 }
exit = { below_ratio = 0.5, windows = 6 }
"""
    head, _, tail = SMALLEST.partition("[[rungs]]")
    ladder = parse_ladder(f"{head}{text}[[rungs]]{tail}", "l.toml")

    assert ladder.model_fields_set == set(Ladder.model_fields)
    assert ladder.windows.model_fields_set == set(Windowing.model_fields)
    rung = ladder.rungs[0]
    of_other_actions = {"drop_share", "pool", "template_argument", "prompt_suffix", "requeue_tokens_per_minute"}
    assert rung.model_fields_set == set(Rung.model_fields) - of_other_actions
    assert rung.scope.covers(rung.scope.classes[0], "acme")
    assert not rung.scope.covers(rung.scope.classes[0], "bolt")
    assert (rung.entry.above, rung.exit.windows) == (0.9, 6)


def test_every_mistake_is_told_at_once_with_its_line() -> None:
    text = """\
schema = "llmshed.ladder/2"
name = "x"
[windows]
window_seconds = 0.01
[[rungs]]
name = "a"
action = "stop_balk"
owner = "a\\nb"
agreed_on = "2026-12-01"
[[rungs]]
name = "a"
action = "cap_output"
owner = "b"
agreed_on = 2026-12-01
exits = { windows = 3 }
"""
    told = mistakes_of(text)
    assert [line.split(" ", 2)[:2] for line in told] == [
        ["l.toml:1:", "schema:"],
        ["l.toml:1:", "version:"],
        ["l.toml:4:", "windows.window_seconds:"],
        ["l.toml:7:", "rungs[0].action:"],
        ["l.toml:8:", "rungs[0].owner:"],
        ["l.toml:9:", "rungs[0].agreed_on:"],
        ["l.toml:10:", "rungs[1].max_output_tokens:"],
        ["l.toml:11:", "rungs[1].name:"],
        ["l.toml:15:", "rungs[1].exits:"],
    ]
    assert 'did you mean "stop_bulk"?' in told[3]
    assert "did you mean `rungs[1].exit`?" in told[8]


def test_a_syntax_error_has_its_line_and_the_exit_code_of_configuration() -> None:
    with pytest.raises(LadderError, match=r"^l.toml:2: column \d+: not TOML") as refused:
        parse_ladder("schema = 'x'\nname == 1\n", "l.toml")
    assert refused.value.exit_code == ExitCode.CONFIG


def test_the_stand_ins_cover_every_field_without_a_default() -> None:
    schema = Ladder.model_json_schema()
    needed = {name for table in (schema, *schema["$defs"].values()) for name in table.get("required", ())}
    assert needed == set(STAND_INS)


@pytest.mark.parametrize("model", [Ladder, Windowing, Rung, Scope, Entry, Exit], ids=lambda model: model.__name__)
def test_every_table_is_frozen_and_every_field_says_what_it_means(model: type[BaseModel]) -> None:
    assert issubclass(model, Settings)
    assert all(str(info.description).rstrip().endswith(".") for info in model.model_fields.values())


FIELDS = sorted({str(part) for path in Catalogue(Ladder).leaves() for part in path if isinstance(part, str)})
values = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.dates()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)),
    max_leaves=10,
)


@settings(max_examples=15)
@given(st.dictionaries(st.sampled_from(sorted(Ladder.model_json_schema()["properties"])), values, max_size=6))
def test_any_data_is_a_ladder_or_refused_with_lines(document: dict[str, Any]) -> None:
    import tomli_w  # noqa: PLC0415 - only this test writes TOML

    for line in mistakes_of(tomli_w.dumps(document)):
        assert line.startswith("l.toml:")
        assert line.isprintable()
