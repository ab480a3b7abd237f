"""The worked example of the source text before a replica in a stated condition."""

import pytest

from fakes.door import policy, request, spec
from llmshed.admission.offline import offline_verdict
from llmshed.admission.policy import ModelLimits
from llmshed.admission.reasons import Reason
from llmshed.admission.report import verdict_report


@pytest.mark.parametrize(
    ("input_tokens", "reserved", "verdict", "reason", "status"),
    [
        (14_000, 18_000, "admit", None, 200),
        (16_400, 20_400, "admit", None, 200),
        (16_401, 20_401, "refuse", Reason.TOKEN_BUDGET_EXHAUSTED, 429),
        (19_000, 23_000, "refuse", Reason.TOKEN_BUDGET_EXHAUSTED, 429),
        (200_000, 204_000, "refuse", Reason.CONTEXT_LIMIT, 413),
    ],
)
def test_the_worked_example(input_tokens: int, reserved: int, verdict: str, reason: Reason | None, status: int) -> None:
    asked = request(1, input_tokens, 4_000)
    got = offline_verdict(asked, policy(), spec(), active_tokens=58_000, queued_tokens=8_000)
    report = verdict_report(got, asked)
    assert report["reservation_tokens"] == reserved
    assert report["equation"]["headroom_tokens"] == 20_400
    assert (report["verdict"], report["reason"], report["status"]) == (verdict, reason, status)
    assert report["fits"] is (verdict == "admit")
    assert report["retry_after_seconds"] is None


def test_stated_sequences_take_seats() -> None:
    full = offline_verdict(request(1), policy(), spec(hard_cap_sequences=4), active_sequences=4)
    assert full.reason is Reason.CONCURRENCY_LIMIT


def test_what_is_queued_is_no_permanent_limit() -> None:
    refused = offline_verdict(request(1, 80_000, 100), policy(), spec(), queued_tokens=86_000)
    assert refused.reason is Reason.TOKEN_BUDGET_EXHAUSTED


def test_what_is_refused_for_good_fits_nowhere() -> None:
    asked = request(1, 9, 20_000)
    limited = spec(limits=ModelLimits(8_191, 8_192))
    report = verdict_report(offline_verdict(asked, policy(), limited), asked)
    assert (report["status"], report["fits"]) == (413, False)
    assert report["reservation_tokens"] < report["equation"]["headroom_tokens"]
