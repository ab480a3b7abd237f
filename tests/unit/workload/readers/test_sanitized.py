"""The reader of sanitized logs: what they hold, and what is broken."""

import pytest

from fakes.traces import read_text
from llmshed.admission.request import Intent
from llmshed.errors import TraceError
from llmshed.workload.readers.sanitized import COLUMNS, read_sanitized

HEADER = ",".join(COLUMNS) + "\n"


def test_each_line_is_a_request() -> None:
    text = HEADER + "0.000000,interactive,ta,12,64,7,1\n1.500000,bulk,tb,30,,9,2\n2.000000,overflow,ta,40,,9,1\n"
    first, second, third = read_text(read_sanitized, text)
    assert (first.at_seconds, first.input_tokens, first.true_output_tokens, first.asked_output_tokens) == (0, 12, 7, 64)
    assert (first.intent, first.tenant, first.copies, first.imputed) == (Intent.INTERACTIVE, "ta", 1, False)
    assert (second.at_seconds, second.intent, second.copies, second.asked_output_tokens) == (1.5, Intent.BULK, 2, None)
    # A lane that was found by size is found again.
    assert third.intent is None


def test_an_output_that_nobody_saw_is_made_up() -> None:
    seen = "".join(f"{number}.0,interactive,ta,12,64,7,1\n" for number in range(3))
    *_, last = read_text(read_sanitized, f"{HEADER}{seen}3.0,interactive,ta,12,64,0,1\n")
    assert (last.true_output_tokens, last.imputed) == (7, True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x,interactive,ta,12,64,7,1", "at_seconds is 'x'"),
        ("0.0,interactive,ta,-1,64,7,1", "input_tokens is '-1'"),
        ("0.0,interactive,ta,12,64,7,0", "sequences is '0'"),
        ("0.0,interactive,,12,64,7,1", "tenant is ''"),
    ],
)
def test_a_broken_line_is_told(line: str, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        read_text(read_sanitized, f"{HEADER}{line}\n")
