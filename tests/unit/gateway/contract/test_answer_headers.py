"""The headers of served answers."""

from hypothesis import given
from hypothesis import strategies as st

from llmshed.admission.budget import Reservation
from llmshed.admission.request import Lane
from llmshed.admission.verdict import Decision, Verdict
from llmshed.gateway.contract.answer_headers import Timings, answer_headers, common_headers

ADMITTED = Verdict(
    Decision.ADMIT,
    lane=Lane.INTERACTIVE,
    output_ceiling_tokens=512,
    reservation=Reservation(input_tokens=400, output_tokens=1024, overrun_tokens=0, sequences=2),
    replica="gpu-0",
    profile="h100-70b/3",
)


def test_a_whole_answer_tells_lane_counts_reservation_replica_profile_and_times() -> None:
    timings = Timings(counting_seconds=0.003, queue_seconds=0.041, total_seconds=0.8124)
    headers = answer_headers("req_1", ADMITTED, input_tokens=400, model="acme/chat", timings=timings)
    assert headers == {
        "x-request-id": "req_1",
        "request-id": "req_1",
        "x-llmshed-lane": "interactive",
        "x-llmshed-model": "acme/chat",
        "x-llmshed-input-tokens": "400",
        "x-llmshed-reserved-tokens": "1424",
        "x-llmshed-output-ceiling": "512",
        "x-llmshed-replica": "gpu-0",
        "x-llmshed-profile": "h100-70b/3",
        "server-timing": "tok;dur=3.0, queue;dur=41.0, total;dur=812.4",
    }


def test_a_stream_has_no_total_and_asks_proxies_not_to_hold_it_back() -> None:
    headers = answer_headers("r", ADMITTED, input_tokens=400, streamed=True)
    assert headers["server-timing"] == "tok;dur=0.0, queue;dur=0.0"
    timings = Timings(counting_seconds=0.003, queue_seconds=0.041, ttft_seconds=0.2365)
    headers = answer_headers("r", ADMITTED, input_tokens=400, timings=timings, streamed=True)
    assert headers["server-timing"] == "tok;dur=3.0, queue;dur=41.0, ttft;dur=236.5"
    assert headers["x-accel-buffering"] == "no"


def test_a_truncated_prompt_has_both_its_counts_told() -> None:
    headers = answer_headers("r", ADMITTED, input_tokens=400, untruncated_tokens=9000)
    assert (headers["x-llmshed-input-tokens"], headers["x-llmshed-untruncated-tokens"]) == ("400", "9000")


def test_an_answer_without_a_lane_says_so() -> None:
    assert common_headers("r")["x-llmshed-lane"] == "none"
    assert "x-llmshed-model" not in common_headers("r")


@given(st.text(), st.text())
def test_no_model_name_can_break_out_of_its_header(request_id: str, model: str) -> None:
    for value in common_headers(request_id, Lane.BULK, model).values():
        assert value.isascii()
        assert value.isprintable()
