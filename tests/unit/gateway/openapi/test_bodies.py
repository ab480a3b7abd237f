"""Schemas of bodies: what they say of a field is what its kind takes."""

import orjson
import pytest

from llmshed.engines.base import Route
from llmshed.engines.fields import INT32_MAX, UINT64_MAX, Kind
from llmshed.gateway.openapi.bodies import KIND_SCHEMAS, body_schema


@pytest.mark.parametrize("kind", list(Kind))
def test_a_kind_takes_what_its_schema_says(kind: Kind) -> None:
    schema = KIND_SCHEMAS[kind]
    for low, high in ((schema.get("minimum"), schema.get("maximum")),):
        if low is not None and high is not None:
            taken = [kind.value.fits(value) for value in (low - 1, low, high, high + 1)]
            assert taken == [False, True, True, False]
    if "maxLength" in schema:
        assert [kind.value.fits("x" * (schema["maxLength"] + more)) for more in (0, 1)] == [True, False]
    samples = {"boolean": True, "string": "x", "number": 1.5, "object": {}, "array": [], "integer": 1}
    named = {one for part in schema.get("anyOf", [schema]) for one in types_of(part.get("type"))}
    if "number" in named:
        named.add("integer")
    assert kind is Kind.ANY or {name for name, value in samples.items() if kind.value.fits(value)} == named


def types_of(told: object) -> list[str]:
    return [told] if isinstance(told, str) else list(told) if isinstance(told, list) else []


def test_bounds_are_written_in_full() -> None:
    assert KIND_SCHEMAS[Kind.COUNT]["maximum"] == INT32_MAX
    assert orjson.loads(orjson.dumps(KIND_SCHEMAS[Kind.SEED]))["maximum"] == UINT64_MAX


def test_one_schema_leaves_another_as_it_is() -> None:
    before = orjson.dumps(body_schema(Route.GENERATE))
    body_schema(Route.CHAT)
    body_schema(Route.COMPLETIONS)
    assert orjson.dumps(body_schema(Route.GENERATE)) == before
    assert KIND_SCHEMAS[Kind.TEXT] == {"type": "string"}
