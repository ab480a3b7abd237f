"""No limit, and a limit on requests: counted by hand."""

import pytest

from fakes.knocks import Knocker
from fakes.stages import ONE_POOL, stage
from llmshed.admission.actions import Dispatch, Refuse, Released
from llmshed.admission.events import Finished, ReplicaDown
from llmshed.admission.reasons import Reason
from llmshed.whatif.gates.limits import RequestLimit
from llmshed.whatif.gates.table import build_gate, request_limit_gate


def names(actions: list[object]) -> list[str]:
    return [action.replica for action in actions if isinstance(action, Dispatch)]


def test_without_a_limit_everything_goes_to_the_replica_with_the_fewest_outstanding() -> None:
    knocker = Knocker(lambda s: build_gate("none", s), stage(3))
    sent = [name for _ in range(300) for name in names([*knocker.knock(7000, 1000)])]
    assert sent == ["main-1", "main-2", "main-3"] * 100, "budgets and seats bind nobody"
    assert [type(a) for a in knocker.tell(Finished(2), 1.0)] == [Released]
    assert names([*knocker.knock()]) == ["main-2"]


def test_without_a_limit_a_gateway_still_refuses_when_no_replica_is_up() -> None:
    knocker = Knocker(lambda s: build_gate("none", s))
    knocker.tell(ReplicaDown("main-1"), 0.0)
    (answer,) = knocker.knock()
    assert isinstance(answer, Refuse)
    assert answer.verdict.reason is Reason.NO_REPLICA


def test_a_request_limit_counts_requests_on_each_replica_whatever_their_size() -> None:
    knocker = Knocker(lambda s: request_limit_gate(s, 2), stage(2))
    sent = [names([*knocker.knock(size, 5)]) for size in (10, 7000, 10, 7000)]
    assert sent == [["main-1"], ["main-2"], ["main-1"], ["main-2"]]
    (answer,) = knocker.knock(1, 1)
    assert isinstance(answer, Refuse)
    assert answer.verdict.reason is Reason.CONCURRENCY_LIMIT
    assert answer.verdict.detail == "requests in flight: main-1 has 2 of 2; main-2 has 2 of 2"
    assert answer.verdict.retry_after_seconds == 1.0
    knocker.tell(Finished(4), 1.0)
    assert names([*knocker.knock()]) == ["main-2"]


def test_a_request_limit_is_the_hard_cap_unless_it_is_given() -> None:
    knocker = Knocker(
        lambda s: build_gate("request_limit", s), stage(text=ONE_POOL.replace("sequences = 100", "sequences = 7"))
    )
    answers = [knocker.knock()[0] for _ in range(9)]
    assert [type(a) for a in answers] == [Dispatch] * 7 + [Refuse] * 2


@pytest.mark.parametrize("requests", [0, -1])
def test_a_limit_that_lets_nothing_through_is_refused(requests: int) -> None:
    with pytest.raises(ValueError, match=f"a limit of {requests} requests lets nothing through"):
        RequestLimit(requests)
