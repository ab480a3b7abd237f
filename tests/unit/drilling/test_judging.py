from typing import Any

import pytest

from llmshed.drilling.judging import judged


@pytest.mark.parametrize(
    ("check", "answer", "holds"),
    [
        ({"exact": "Paris"}, " Paris\n", True),
        ({"exact": "Paris"}, "paris", False),
        ({"exact": "Straße", "ignore_case": True}, "STRASSE", True),
        ({"exact": ""}, "", True),
        ({"regex": r"\bParis\b"}, "It is Paris.", True),
        ({"regex": r"^Paris"}, "It is Paris.", False),
        ({"regex": "paris", "ignore_case": True}, "PARIS", True),
        ({"json_schema": {"type": "object", "required": ["city"]}}, ' {"city": "Paris"} ', True),
        ({"json_schema": {"type": "object", "required": ["city"]}}, "{}", False),
        ({"json_schema": {"type": "object"}}, "Here is your JSON: {}", False),
        ({"json_schema": True}, "1", True),
        ({"json_schema": {"$schema": "http://json-schema.org/draft-07/schema#", "const": 1}}, "1", True),
    ],
)
def test_a_check_holds_or_does_not(check: dict[str, Any], answer: str, holds: bool) -> None:  # noqa: FBT001 - a column
    pytest.importorskip("jsonschema", reason="JSON schemas are checked by an extra")
    assert judged(check, answer) == float(holds)


def test_a_schema_that_refers_to_the_network_fetches_nothing() -> None:
    pytest.importorskip("jsonschema", reason="JSON schemas are checked by an extra")
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        judged({"json_schema": {"$ref": "http://127.0.0.1:9/schema"}}, "1")
