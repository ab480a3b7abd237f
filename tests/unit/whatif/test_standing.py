"""Where requests count, whatever gate they meet."""

from dataclasses import replace

from fakes.stages import stage
from llmshed.admission.policy import AdmissionPolicy, LanePolicy, TenantPolicy
from llmshed.admission.request import Intent, Lane, PriorityClass, Request
from llmshed.whatif.standing import Standing, standing_of

SETTING = stage()
LIMITS = SETTING.specs[0].limits


def request(input_tokens: int, asked: int | None = None, **changed: object) -> Request:
    return replace(Request(1, "anonymous", "m", (input_tokens,), asked_output_tokens=asked), **changed)  # type: ignore[arg-type]  # any field


def standing(asked: Request, policy: AdmissionPolicy = SETTING.policy) -> Standing:
    return standing_of(asked, policy, LIMITS)


def test_size_decides_the_lane_of_what_nobody_declared() -> None:
    assert standing(request(4096, 1024)) == Standing(Lane.INTERACTIVE, PriorityClass.NORMAL, 1024)
    assert standing(request(4097, 10)).lane is Lane.BULK
    assert standing(request(10, 1025)).lane is Lane.BULK


def test_a_ceiling_that_nobody_asked_for_is_the_lanes() -> None:
    assert standing(request(100)).ceiling_tokens == 512
    assert standing(request(100, asked_intent=Intent.BULK)).ceiling_tokens == 1024


def test_the_context_bounds_a_ceiling_that_was_not_asked_for() -> None:
    assert standing(request(8000)).ceiling_tokens == 192


def test_overflow_counts_as_overflow() -> None:
    lanes = {**SETTING.policy.lanes, Lane.BULK: LanePolicy(5000, None, 1024)}
    assert standing(request(5001), replace(SETTING.policy, lanes=lanes)).lane is Lane.OVERFLOW


def test_a_class_above_the_tenants_own_is_not_given() -> None:
    assert standing(request(1, asked_class=PriorityClass.HIGH)).priority_class is PriorityClass.NORMAL
    assert standing(request(1, asked_class=PriorityClass.LOW)).priority_class is PriorityClass.LOW


def test_an_intent_that_is_not_allowed_counts_as_bulk() -> None:
    only_bulk = TenantPolicy("anonymous", frozenset({Intent.BULK}), Intent.BULK)
    policy = replace(SETTING.policy, tenants={"anonymous": only_bulk})
    assert standing(request(10, 10, asked_intent=Intent.INTERACTIVE), policy).lane is Lane.BULK
