"""The policies by name."""

import pytest

from fakes.stages import stage
from llmshed.admission.controller import AdmissionController
from llmshed.whatif.gates.table import GATES, OURS, build_gate


def test_every_policy_of_the_table_is_built_with_its_replicas_up() -> None:
    assert list(GATES) == [
        "ours", "none", "request_limit", "token_bucket", "thresholds", "smallest_first", "oracle",
    ]  # fmt: skip
    for name, kind in GATES.items():
        gate = build_gate(name, stage(2))
        assert gate.check() == ()
        assert gate.next_wakeup() is None
        assert kind.stands_for


def test_ours_is_the_daemon_s_own_controller() -> None:
    assert type(build_gate(OURS, stage())) is AdmissionController


def test_an_unknown_policy_is_told_which_are_known() -> None:
    with pytest.raises(ValueError, match="no policy is called best; known are ours, none, request_limit"):
        build_gate("best", stage())
