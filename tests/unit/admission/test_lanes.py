import pytest

from fakes.door import LANES, request
from llmshed.admission.lanes import allowed_class, allowed_intent, lane_of, output_ceiling
from llmshed.admission.policy import LanePolicy, ModelLimits, TenantPolicy
from llmshed.admission.request import Intent, Lane, PriorityClass

LIMITS = ModelLimits(8_191, 8_192)


@pytest.mark.parametrize(
    ("input_tokens", "output", "lane"),
    [
        (4_096, 1_024, Lane.INTERACTIVE),
        (4_097, 1_024, Lane.BULK),
        (4_096, 1_025, Lane.BULK),
        (4_096, None, Lane.INTERACTIVE),
        (4_097, None, Lane.BULK),
        (0, 1, Lane.INTERACTIVE),
    ],
)
def test_size_sorts_interactive_work(input_tokens: int, output: int | None, lane: Lane) -> None:
    assert lane_of(request(1, input_tokens, output), Intent.INTERACTIVE, LANES) is lane


def test_bulk_stays_bulk_however_small() -> None:
    assert lane_of(request(1, 1, 1), Intent.BULK, LANES) is Lane.BULK


def test_beyond_the_bulk_lane_is_overflow_even_where_interactive_is_unbounded_in_output() -> None:
    lanes = LANES | {Lane.BULK: LanePolicy(10_000, None, 1024)}
    assert lane_of(request(1, 10_001), Intent.BULK, lanes) is Lane.OVERFLOW
    assert lane_of(request(1, 10_000), Intent.INTERACTIVE, lanes) is Lane.BULK


def test_the_longest_prompt_of_a_list_decides() -> None:
    assert lane_of(request(1, [10, 4_096, 4_096]), Intent.INTERACTIVE, LANES) is Lane.INTERACTIVE
    assert lane_of(request(1, [10, 4_097]), Intent.INTERACTIVE, LANES) is Lane.BULK


@pytest.mark.parametrize(
    ("output", "input_tokens", "ceiling"),
    [
        (77, 100, 77),  # what was asked for
        (None, 100, 512),  # the lane's default
        (None, 8_000, 192),  # what the context leaves
        (None, 8_192, 0),  # nothing is left: the caller is refused for it
    ],
)
def test_the_ceiling(output: int | None, input_tokens: int, ceiling: int) -> None:
    assert output_ceiling(request(1, input_tokens, output), LANES[Lane.INTERACTIVE], LIMITS) == ceiling


def test_an_absent_ceiling_is_bounded_by_the_lane_and_by_the_model() -> None:
    assert output_ceiling(request(1, 10, None), LanePolicy(None, 300, 512), LIMITS) == 300
    assert output_ceiling(request(1, 10, None), LanePolicy(None, None, 512), ModelLimits(99, 8_192, 44)) == 44


def test_a_client_may_ask_for_less_and_never_for_more() -> None:
    bulk_only = TenantPolicy("b", intents=frozenset({Intent.BULK}))
    interactive_only = TenantPolicy("i", intents=frozenset({Intent.INTERACTIVE}))
    assert allowed_intent(bulk_only, None) is Intent.BULK
    assert allowed_intent(bulk_only, Intent.INTERACTIVE) is None
    assert allowed_intent(interactive_only, Intent.BULK) is Intent.BULK
    assert allowed_intent(TenantPolicy("t", default_intent=Intent.BULK), None) is Intent.BULK


@pytest.mark.parametrize("top", PriorityClass)
@pytest.mark.parametrize("asked", [None, *PriorityClass])
def test_the_class_is_never_above_the_tenants(top: PriorityClass, asked: PriorityClass | None) -> None:
    given = allowed_class(TenantPolicy("t", top_class=top), asked)
    assert given.rank >= top.rank
    assert given is (asked if asked is not None and asked.rank >= top.rank else top)
