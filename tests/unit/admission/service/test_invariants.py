"""Each disagreement between ledgers, queues, tenants and live requests is told as a sentence."""

import pytest

from fakes.door import arrive, door, queueing_lanes, spec
from llmshed.admission.actions import Dispatch, Enqueue
from llmshed.admission.controller import AdmissionController
from llmshed.admission.service.invariants import broken_between


@pytest.fixture
def controller() -> AdmissionController:
    """One request runs on r1, another waits for it; r2 is too small for either."""
    small = spec("r2", gross_ceiling_tokens=100, decode_seconds_per_token=0.001)
    controller = door(
        spec("r1", gross_ceiling_tokens=10_000, decode_seconds_per_token=0.001), small, lanes=queueing_lanes()
    )
    assert isinstance(arrive(controller, 1, 8_000), Dispatch)
    assert isinstance(arrive(controller, 2, 2_000), Enqueue)
    return controller


def told(controller: AdmissionController, sent_to: dict[int, str]) -> list[str]:
    return list(broken_between(controller._roster, sent_to, controller._tenant_use))


def test_nothing_is_told_while_all_agree(controller: AdmissionController) -> None:
    assert told(controller, {1: "r1"}) == []


def test_a_charge_on_another_replica_or_on_none(controller: AdmissionController) -> None:
    assert told(controller, {1: "r2"}) == ["request 1 was sent to r2 and is charged on ['r1']"]
    assert told(controller, {1: "r1", 7: "r2"}) == ["request 7 was sent to r2 and is charged on []"]


def test_a_request_that_runs_and_waits(controller: AdmissionController) -> None:
    assert "request 2 was sent to r1 and waits too" in told(controller, {1: "r1", 2: "r1"})


def test_a_charge_of_nobody(controller: AdmissionController) -> None:
    assert told(controller, {}) == ["r1: request 1 is charged but neither live nor releasing"]


def test_what_a_tenant_holds_beside_the_ledgers(controller: AdmissionController) -> None:
    controller._tenant_use.tokens["acme"] -= 1
    controller._tenant_use.requests["acme"] += 1
    assert told(controller, {1: "r1"}) == [
        "what tenants hold differs from what replicas lent and queues keep",
        "requests counted by tenant differ from charges and queues",
    ]


def test_what_a_ledger_or_a_pool_finds_by_itself_has_its_name(controller: AdmissionController) -> None:
    controller._replicas["r1"].ledger.active_sequences += 1
    controller._pools["main"]._requests[0] += 1
    sentences = told(controller, {1: "r1"})
    assert [sentence.partition(":")[0] for sentence in sentences] == ["r1", "main"]
