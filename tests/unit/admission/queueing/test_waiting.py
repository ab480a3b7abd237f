from fakes.queued import waiting
from llmshed.admission.request import PriorityClass


def test_a_waiting_request_tells_what_it_reserves_and_when_it_ages() -> None:
    one = waiting(7, "acme", 100.0, 600, 400, PriorityClass.LOW, sequences=2, residence_seconds=8.0, continuing=True)
    assert (one.key, one.tenant, one.priority_class, one.continuing) == (7, "acme", PriorityClass.LOW, True)
    assert (one.total_tokens, one.input_tokens, one.sequences) == (1_000, 600, 2)
    assert (one.rank, one.arrival, one.ages_at, one.expires_at) == (2, (100.0, 7), 104.0, 108.0)
