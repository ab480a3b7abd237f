"""The refusals before a body is read: each is made for its call alone, since the gateway fills it in in place."""

from collections.abc import Callable

import pytest

from fakes.door import arrive, door, policy
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import Draining, ReplicaDown
from llmshed.admission.policy import TenantPolicy
from llmshed.admission.verdict import AcceptedMaximums


def starting() -> AdmissionController:
    return AdmissionController(policy())


def without_replica() -> AdmissionController:
    controller = door()
    controller.handle(ReplicaDown("r1"), 0.0)
    return controller


def draining() -> AdmissionController:
    controller = door()
    controller.handle(Draining(), 0.0)
    return controller


def with_a_full_quota() -> AdmissionController:
    controller = door(tenants={"acme": TenantPolicy("acme", max_concurrent_requests=1)})
    arrive(controller, 1)
    return controller


@pytest.mark.parametrize("made", [starting, without_replica, draining, with_a_full_quota])
def test_what_is_written_into_one_is_not_in_the_next(made: Callable[[], AdmissionController]) -> None:
    controller = made()
    first, untouched = controller.gate("acme", 1.0), controller.gate("acme", 1.0)
    assert first is not None
    assert untouched == first
    first.maximums = AcceptedMaximums(1, 2, 3)
    assert controller.gate("acme", 1.0) == untouched != first
