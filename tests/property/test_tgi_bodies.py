"""Bodies of any content are a call with one meaning, or refused with a reason."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError, Route
from llmshed.engines.fields import Fate, FieldTable, Kind
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.engines.tgi.fields import PARAMETER_FIELDS, ROUTE_FIELDS
from llmshed.gateway.door.body import parse_body

CEILING = 321
ENGINES = [TgiEngine("3.3.5"), TgiEngine("2.4.0", allow_truncate=True), TgiEngine("1.4.5")]

texts = st.text() | st.sampled_from(["![](http://a/b.png)", "![](", "a"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 200) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
parts = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
    st.fixed_dictionaries({"type": st.just("image_url"), "image_url": st.just({"url": "data:a", "detail": "low"})}),
)
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant"]), "content": texts | st.lists(parts, max_size=3)},
    optional={"name": st.none() | texts, "tool_calls": st.none(), "refusal": anything, "tool_call_id": anything},
)
FITTING: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.ANY: anything,
    Kind.BOOLEAN: st.booleans(),
    Kind.INTEGER: st.integers(0, 9),
    Kind.COUNT: st.integers(1, 5000),
    Kind.COPIES: st.integers(1, 3),
    Kind.SEED: st.integers(0, 2**64 - 1),
    Kind.NUMBER: st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False),
    Kind.TEXT: texts,
    Kind.HINT: st.text(max_size=256),
    Kind.TEXTS: texts | st.lists(texts, max_size=2),
    Kind.CHOICE: st.sampled_from(["auto", "none"]),
    Kind.OBJECT: st.just({}),
    Kind.OBJECTS: st.just([]),
}


def optional_fields(table: FieldTable, without: set[str]) -> st.SearchStrategy[dict[str, Any]]:
    """A few fields of a table, of their own kind."""
    taken = {name: row for name, row in table.items() if row.fate is not Fate.REFUSED and name not in without}
    one = st.sampled_from(sorted(taken)).flatmap(
        lambda name: st.tuples(st.just(name), st.none() | FITTING[taken[name].kind])
    )
    return st.lists(one, max_size=4).map(dict)


def fitting_bodies(route: Route) -> st.SearchStrategy[dict[str, Any]]:
    """Bodies in which every field is of its own kind; they may still contradict themselves."""
    needed: dict[str, st.SearchStrategy[Any]]
    match route:
        case Route.CHAT | Route.CHAT_TOKENIZE:
            needed = {"messages": st.lists(messages, min_size=1, max_size=3)}
        case Route.COMPLETIONS:
            needed = {"prompt": st.text(min_size=1) | st.lists(st.text(min_size=1), min_size=1, max_size=3)}
        case _:
            needed = {
                "inputs": st.text(min_size=1) | st.just("![](http://a)"),
                "parameters": st.none() | optional_fields(PARAMETER_FIELDS, {"truncate"}),
            }
    more = optional_fields(ROUTE_FIELDS[route], set(needed))
    return st.builds(lambda body, others: {**others, **body}, st.fixed_dictionaries(needed), more)


cases = st.sampled_from(list(Route)).flatmap(lambda route: st.tuples(st.just(route), fitting_bodies(route)))


def parsed(body: dict[str, Any]) -> dict[str, Any]:
    return parse_body(json.dumps(body).encode())


@given(cases, st.sampled_from(ENGINES))
def test_what_goes_on_is_read_again_as_the_same_call(case: tuple[Route, dict[str, Any]], engine: TgiEngine) -> None:
    route, body = case
    try:
        call = engine.read_call(route, parsed(body))
    except BodyError as error:
        assert error.reason in {Reason.MALFORMED, Reason.UNSUPPORTED_FIELD}  # noqa: PT017 - a contradiction is refused
        return
    again = engine.read_call(route, parse_body(engine.write_body(call, CEILING)))
    assert again.prompts == call.prompts
    assert again.images == call.images
    assert again.copies == call.copies
    assert again.streamed == call.streamed
    assert engine.write_body(again, CEILING) == engine.write_body(call, CEILING)
    if route.generates:
        assert again.asked_output_tokens == CEILING


@given(cases, st.data())
def test_a_value_of_any_kind_in_any_field_is_taken_or_refused(
    case: tuple[Route, dict[str, Any]], data: st.DataObject
) -> None:
    route, body = case
    name = data.draw(st.sampled_from(sorted(ROUTE_FIELDS[route])) | st.text())
    try:
        TgiEngine().read_call(route, parsed({**body, name: data.draw(anything)}))
    except BodyError as error:
        assert error.reason in {Reason.MALFORMED, Reason.UNSUPPORTED_FIELD}  # noqa: PT017 - taking is as good
