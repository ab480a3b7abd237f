"""Quotas of one tenant never touch another."""

from typing import Any

import pytest

from fakes.door import arrive, door, request, spec
from llmshed.admission.budget import Reservation
from llmshed.admission.events import Cancelled, Finished
from llmshed.admission.policy import TenantPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.tenancy import TenantUse


def two_tenants(**quota: Any) -> dict[str, TenantPolicy]:
    return {"acme": TenantPolicy("acme", **quota), "other": TenantPolicy("other")}


def test_requests_at_once() -> None:
    controller = door(tenants=two_tenants(max_concurrent_requests=2))
    arrive(controller, 1)
    assert controller.gate("acme", 0.0) is None
    arrive(controller, 2, copies=3)  # three sequences are one request
    gated = controller.gate("acme", 0.0)
    assert gated is not None
    assert gated.reason is Reason.TENANT_QUOTA
    assert gated.retry_after_seconds is not None
    assert gated.retry_after_seconds > 0
    assert controller.assess(request(3), 0.0).reason is Reason.TENANT_QUOTA
    assert controller.gate("other", 0.0) is None
    assert controller.assess(request(3, tenant="other"), 0.0).reason is None
    controller.handle(Finished(1), 1.0)
    assert controller.gate("acme", 1.0) is None


def test_reserved_tokens_at_once() -> None:
    controller = door(tenants=two_tenants(max_reserved_tokens=1_000))
    arrive(controller, 1, 500, 100)
    refused = controller.assess(request(2, 400, 1), 0.0)
    assert refused.reason is Reason.TENANT_QUOTA
    assert refused.maximums is not None
    assert "600 of 1,000 tokens" in refused.detail
    assert controller.assess(request(2, 300, 100), 0.0).reason is None


def test_the_wait_for_a_quota_counts_the_prompts_of_others_that_are_worked_on_before() -> None:
    rated = spec(prefill_tokens_per_second=200_000.0, decode_seconds_per_token=0.1)
    controller = door(rated, tenants=two_tenants(max_concurrent_requests=1))
    arrive(controller, 1, 20_000, 100, tenant="other")  # in prefill until 0.1
    arrive(controller, 2, 1_000, 100)  # until 0.105, and 10 s of output
    refused = controller.assess(request(3), 0.0)
    assert refused.reason is Reason.TENANT_QUOTA
    assert refused.retry_after_seconds == pytest.approx(10.105)


def test_a_request_above_the_whole_quota_is_refused_for_good() -> None:
    refused = door(tenants=two_tenants(max_reserved_tokens=1_000)).assess(request(1, 1_000, 1), 0.0)
    assert (refused.reason, refused.retry_after_seconds) == (Reason.LANE_LIMIT, None)


def test_a_gone_clients_tokens_count_until_they_are_released() -> None:
    controller = door(tenants=two_tenants(max_reserved_tokens=1_000))
    arrive(controller, 1, 500, 100)
    controller.handle(Cancelled(1, sent=True), 1.0)
    assert controller.assess(request(2, 500, 1), 1.0).reason is Reason.TENANT_QUOTA
    wake = controller.next_wakeup()
    assert wake is not None
    arrive(controller, 2, 500, 1, now=wake)
    assert controller.check() == ()


def test_a_tenant_that_holds_nothing_is_forgotten() -> None:
    use = TenantUse()
    use.charge("acme", Reservation(1, 1, 0, 1))
    use.free("acme", Reservation(1, 1, 0, 1))
    assert not use.requests
    assert not use.tokens
    with pytest.raises(KeyError):
        _ = dict(use.tokens)["acme"]
