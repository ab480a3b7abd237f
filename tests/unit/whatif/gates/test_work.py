"""What every policy sees of a request, and what all of them refuse."""

from typing import Any

import pytest

from fakes.knocks import replicas, request, work
from fakes.stages import stage
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane
from llmshed.admission.verdict import Decision, Verdict
from llmshed.whatif.gates.work import refused, work_of

SETTING = stage(2)
TWO_LANES = """
[lanes.bulk]
max_input_tokens = 5000
[[pools]]
name = "chat"
lanes = ["interactive"]
gross_ceiling_tokens = 60_000
[[pools.replicas]]
name = "a"
url = "simulated:"
"""


def test_work_knows_lane_ceiling_and_reservation() -> None:
    one = work(SETTING, input_tokens=400, output=100, copies=2)
    (replica, _) = replicas(SETTING)
    assert one.chosen.lane is Lane.INTERACTIVE
    assert one.terms(replica).reservation.total_tokens == 2 * 500
    assert one.terms(replica) is one.terms(replica)
    verdict = one.verdict(Decision.ADMIT, replica)
    assert (verdict.output_ceiling_tokens, verdict.replica, verdict.lane) == (100, "main-1", Lane.INTERACTIVE)


def test_an_absent_ceiling_is_the_lane_s_default_as_before_the_daemon() -> None:
    one = work(SETTING, output=None)
    assert (
        one.terms(replicas(SETTING)[0]).ceiling_tokens == SETTING.policy.lanes[Lane.INTERACTIVE].default_output_tokens
    )


def test_candidates_are_up_and_long_enough() -> None:
    known = replicas(SETTING)
    known[0].up = False
    assert [replica.spec.name for replica in work(SETTING).candidates(known)] == ["main-2"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"tenant": "nobody"}, Reason.UNAUTHENTICATED),
        ({"model": "other"}, Reason.LANE_LIMIT),
        ({"prompt_tokens": (8001,)}, Reason.CONTEXT_LIMIT),
        ({"prompt_tokens": (8000,), "asked_output_tokens": 200}, Reason.CONTEXT_LIMIT),
    ],
)
def test_what_no_engine_could_serve_is_refused_for_good(changed: dict[str, Any], reason: Reason) -> None:
    verdict = work_of(request(SETTING, 1, **changed), SETTING.policy, replicas(SETTING), 1)
    assert isinstance(verdict, Verdict)
    assert verdict.reason is reason
    assert verdict.retry_after_seconds is None


def test_bounds_of_lanes_bind_llmshed_alone_but_a_lane_without_a_pool_has_nowhere_to_go() -> None:
    setting = stage(text=TWO_LANES)
    verdict = work_of(request(setting, 1, asked_intent=Intent.BULK), setting.policy, replicas(setting), 1)
    assert isinstance(verdict, Verdict)
    assert verdict.reason is Reason.LANE_LIMIT
    shared = stage(text=TWO_LANES.replace('["interactive"]', '["interactive", "bulk"]'))
    assert work(shared, input_tokens=6000).chosen.lane is Lane.OVERFLOW


def test_a_refusal_names_lane_intent_and_class() -> None:
    verdict = refused(work(SETTING), Reason.CONCURRENCY_LIMIT, "full", 1.0)
    assert (verdict.lane, verdict.intent, verdict.status) == (Lane.INTERACTIVE, Intent.INTERACTIVE, 429)
