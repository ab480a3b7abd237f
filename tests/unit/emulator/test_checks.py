"""Rules of generation parameters that need no replica."""

from typing import Any

import pytest

from llmshed.emulator.checks import check_best_of, check_grammar
from llmshed.emulator.failures import TgiError
from llmshed.emulator.forms import FormError, Parameters, read_form
from llmshed.simulation.parameters import ReplicaParameters


def grammar(value: Any) -> Any:
    return read_form(Parameters, {"grammar": value}).grammar


@pytest.mark.parametrize(
    "given",
    [
        None,
        {"type": "regex", "value": "[0-9]+"},
        {"type": "json", "value": {"properties": {}}},
        {"type": "json_object", "value": '{"properties": {}}'},
        {"type": "json_schema", "value": {"name": "n", "schema": {"properties": {}}}},
    ],
)
def test_grammars_that_can_be_compiled_pass(given: Any) -> None:
    check_grammar(grammar(given))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"type": "json", "value": {}}, "grammar is not valid: Grammar must have a 'properties' field"),
        ({"type": "json", "value": "{}"}, "grammar is not valid: Grammar must have a 'properties' field"),
        ({"type": "json_schema", "value": {"schema": True}}, "grammar is not valid: Grammar must have a 'properties'"),
        ({"type": "json", "value": "{"}, "grammar is not valid: "),
        ({"type": "json", "value": 3}, "grammar is not supported"),
    ],
)
def test_grammars_that_cannot_be_compiled_are_refused(given: Any, text: str) -> None:
    with pytest.raises(TgiError, match=r"^Input validation error: ") as caught:
        check_grammar(grammar(given))
    assert text in str(caught.value)
    assert (caught.value.status, caught.value.metric) == (422, "validation")


@pytest.mark.parametrize(
    "given",
    [{"type": "xml", "value": {}}, {"type": "json"}, {"value": {}}, {"type": "regex", "value": {}}, "json"],
)
def test_what_is_no_grammar_is_no_body(given: Any) -> None:
    with pytest.raises(FormError):
        grammar(given)


def test_copies_are_bounded_before_any_permit() -> None:
    check_best_of(2, ReplicaParameters(max_best_of=2))
    with pytest.raises(TgiError, match=r"must be > 0 and <= 2\. Given: 3"):
        check_best_of(3, ReplicaParameters(max_best_of=2))
    with pytest.raises(TgiError, match="is not allowed for this endpoint"):
        check_best_of(2, ReplicaParameters(max_best_of=1))
