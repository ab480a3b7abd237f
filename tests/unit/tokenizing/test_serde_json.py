import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.errors import PromptError
from llmshed.tokenizing.serde_json import dumps


# ryu's pretty format, which serde_json uses: a point up to 16 digits before it and 5 after it, else an exponent.
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (1.5, "1.5"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (1e15, "1000000000000000.0"),
        (1.2345e15, "1234500000000000.0"),
        (1e16, "1e16"),
        (1.25e16, "1.25e16"),
        (123456789012345680.0, "1.2345678901234568e17"),
        (1e300, "1e300"),
        (0.00001, "0.00001"),
        (0.0000123, "0.0000123"),
        (0.000001, "1e-6"),
        (-1.5e-7, "-1.5e-7"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e308"),
    ],
)
def test_floats_are_laid_out_as_ryu_does(value: float, text: str) -> None:
    assert dumps(value) == text


def test_objects_are_compact_and_keep_their_order() -> None:
    assert dumps({"b": [1, None, True], "a": {"é": '"\\/\n\u2028\x7f\x1b'}}) == (
        '{"b":[1,null,true],"a":{"é":"\\"\\\\/\\n\u2028\x7f\\u001b"}}'
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(JSON)
def test_what_is_written_reads_back_as_it_was(value: object) -> None:
    assert json.loads(dumps(value)) == value


def test_half_of_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(PromptError):
        dumps({"a": "\ud800"})
