"""The three rules for output ceilings."""

import pytest

from llmshed.workload.ceilings import CeilingRule, ceiling_tokens, with_ceilings
from llmshed.workload.request import TracedRequest


def request(true_output_tokens: int, asked: int | None = None) -> TracedRequest:
    return TracedRequest(0.0, 10, true_output_tokens, asked_output_tokens=asked)


@pytest.mark.parametrize(("true", "ceiling"), [(1, 2), (2, 4), (3, 4), (4, 8), (255, 256), (256, 512), (1000, 1024)])
def test_pow2_is_the_next_power_of_two_above(true: int, ceiling: int) -> None:
    assert ceiling_tokens(CeilingRule.POW2, request(true)) == ceiling


def test_flat_rules_look_at_nothing() -> None:
    for true in (1, 1024, 100_000):
        assert ceiling_tokens(CeilingRule.FLAT1024, request(true, asked=7)) == 1024
        assert ceiling_tokens(CeilingRule.FLAT4096, request(true, asked=7)) == 4096


def test_asked_is_what_the_trace_holds() -> None:
    assert [one.asked_output_tokens for one in with_ceilings([request(5), request(5, 3)], CeilingRule.ASKED)] == [
        None,
        3,
    ]


@pytest.mark.parametrize("rule", CeilingRule)
def test_the_true_length_stays_whatever_the_ceiling(rule: CeilingRule) -> None:
    (ruled,) = with_ceilings([request(2000)], rule)
    assert ruled.true_output_tokens == 2000
    assert ruled.asked_output_tokens == {"asked": None, "pow2": 2048, "flat1024": 1024, "flat4096": 4096}[rule]
