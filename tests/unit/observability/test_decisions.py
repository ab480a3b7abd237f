"""The decision line: what it holds, and what it never holds."""

import math
from typing import Any

import orjson
import pytest

from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.echo import Arrival
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.admission.verdict import Decision, DelayTerms, QueueTerms, Verdict, WindowTerms
from llmshed.observability.decisions import MAX_LISTED, DecisionLine, DecisionLog, Waits
from llmshed.observability.endings import EndedBy, Ending, Phase, termination

EQUATION = Equation(
    gross_ceiling_tokens=96_000,
    guard_band_tokens=9_600,
    active_tokens=58_000,
    queued_tokens=8_000,
    active_sequences=9,
    hard_cap_sequences=64,
)
VERDICT = Verdict(
    Decision.REFUSE,
    Reason.TOKEN_BUDGET_EXHAUSTED,
    lane=Lane.BULK,
    intent=Intent.BULK,
    priority_class=PriorityClass.LOW,
    output_ceiling_tokens=4_000,
    reservation=Reservation(input_tokens=19_000, output_tokens=4_000, overrun_tokens=0, sequences=1),
    equation=EQUATION,
    replica="gpu-0",
    pool="main",
    profile="h100/3",
    retry_after_seconds=2.0,
    detail="23,000 tokens do not fit",
    delay=DelayTerms(
        tokens_ahead=8_000,
        prefill_tokens_ahead=6_000,
        release_seconds=math.inf,
        prefill_seconds=0.75,
        share=0.5,
        factor=1.25,
        wait_seconds=math.inf,
        own_seconds=2.375,
        promised_seconds=4.0,
    ),
    window=WindowTerms(
        tokens_per_second=8_000.0,
        level_tokens=-500.00000049,
        inflight_tokens=3_000,
        inflight_limit_tokens=4_096,
        bulk_level_tokens=None,
        bulk_credit_tokens=-12.5,
    ),
    queue=QueueTerms(requests=3, tokens=8_000, most_requests=64, most_tokens=86_400, max_residence_seconds=54.0),
)


def decision(request_id: str = "req_1", **fields: Any) -> DecisionLine:
    usual: dict[str, Any] = {
        "time_seconds": 1_767_225_600.25,
        "request_id": request_id,
        "route": "/generate",
        "status": 429,
        "ending": Ending.REFUSED,
        "termination": termination(EndedBy.GATEWAY, Phase.QUEUE),
    }
    return DecisionLine(**usual | fields)


def test_the_line_of_the_worked_example_holds_every_term_of_its_equation() -> None:
    whole = decision(
        tenant="acme",
        model="chat-7b",
        config_version="c1",
        thresholds_version="t1",
        streamed=True,
        retry_count=1,
        arrival=Arrival.DECLARED,
        client_request_id="mine-7",
        prompt_tokens=(19_000,),
        asked_output_tokens=4_000,
        retry_after_seconds=3.5,
        fingerprint="f1f1",
        session="5e55",
        continuing=True,
        prefix_blocks=("b10c", "b10d"),
        estimated_queue_seconds=1.5000004,
        waits=Waits(counting_seconds=0.0031234567, queue_seconds=1.25, total_seconds=1.254),
    ).with_verdict(VERDICT)
    assert orjson.loads(orjson.dumps(whole.record())) == {
        "schema": "llmshed.decision/1",
        "time": "2026-01-01T00:00:00.250000Z",
        "time_seconds": 1_767_225_600.25,
        "request_id": "req_1",
        "client_request_id": "mine-7",
        "route": "/generate",
        "tenant": "acme",
        "model": "chat-7b",
        "pool": "main",
        "replica": "gpu-0",
        "profile": "h100/3",
        "config_version": "c1",
        "thresholds_version": "t1",
        "lane": "bulk",
        "intent": "bulk",
        "priority_class": "low",
        "streamed": True,
        "deadline_seconds": None,
        "first_token_seconds": None,
        "retry_count": 1,
        "arrival": "declared",
        "prompt_tokens": [19_000],
        "copies": 1,
        "sequences": 1,
        "input_tokens": 19_000,
        "asked_output_tokens": 4_000,
        "output_ceiling_tokens": 4_000,
        "output_tokens": None,
        "reservation_tokens": 23_000,
        "reservation": {
            "input_tokens": 19_000,
            "output_tokens": 4_000,
            "overrun_tokens": 0,
            "sequences": 1,
            "total_tokens": 23_000,
        },
        "equation": {
            "gross_ceiling_tokens": 96_000,
            "guard_band_tokens": 9_600,
            "safe_budget_tokens": 86_400,
            "active_tokens": 58_000,
            "queued_tokens": 8_000,
            "headroom_tokens": 20_400,
            "active_sequences": 9,
            "hard_cap_sequences": 64,
            "free_sequences": 55,
        },
        "fits": False,
        "delay": {
            "tokens_ahead": 8_000,
            "prefill_tokens_ahead": 6_000,
            "release_seconds": None,
            "prefill_seconds": 0.75,
            "share": 0.5,
            "factor": 1.25,
            "wait_seconds": None,
            "own_seconds": 2.375,
            "promised_seconds": 4.0,
            "endless": ["release_seconds", "wait_seconds"],
        },
        "window": {
            "tokens_per_second": 8_000.0,
            "level_tokens": -500.0,
            "inflight_tokens": 3_000,
            "inflight_limit_tokens": 4_096,
            "bulk_level_tokens": None,
            "bulk_credit_tokens": -12.5,
        },
        "queue": {
            "requests": 3,
            "tokens": 8_000,
            "most_requests": 64,
            "most_tokens": 86_400,
            "max_residence_seconds": 54.0,
        },
        "detail": "23,000 tokens do not fit",
        "decision": "refuse",
        "reason": "token_budget_exhausted",
        "would": None,
        "would_reason": None,
        "status": 429,
        "retry_after_seconds": 3.5,
        "fingerprint": "f1f1",
        "session": "5e55",
        "continuing": True,
        "prefix_blocks": ["b10c", "b10d"],
        "degradations": [],
        "moved_from": None,
        "rung": None,
        "drill": None,
        "estimated_queue_seconds": 1.5,
        "counting_seconds": 0.003123,
        "queue_seconds": 1.25,
        "connect_seconds": None,
        "ttft_seconds": None,
        "tpot_seconds": None,
        "total_seconds": 1.254,
        "ending": "refused",
        "termination": "GQ",
    }


def test_copies_and_prompt_lists_count_as_the_engine_runs_them() -> None:
    record = decision(prompt_tokens=(100, 50), copies=3).record()
    assert (record["sequences"], record["input_tokens"]) == (6, 450)


def test_a_request_refused_before_counting_has_no_counts() -> None:
    record = decision().record()
    assert (record["sequences"], record["input_tokens"], record["equation"], record["fits"]) == (0, None, None, None)


@pytest.mark.parametrize("seconds", [0.0, 1_767_225_600.0, 1_767_225_600.9999999])
def test_times_always_have_microseconds_so_that_lines_sort_as_text(seconds: float) -> None:
    assert len(decision(time_seconds=seconds).record()["time"]) == len("2026-01-01T00:00:00.000000Z")


def test_a_line_is_one_line_whatever_a_client_put_into_its_names() -> None:
    lines: list[bytes] = []
    log = DecisionLog(lines.append, history=10)
    log.write(decision("r\n{\ud800", model="m\r\n\x1b[31m\u2028" + "x" * 1000, tenant="a\x85b"))
    (line,) = lines
    assert line.decode().splitlines() == [line.decode().rstrip("\n")]
    assert b"\x1b" not in line
    assert len(line) < 2000


def test_neither_an_unknown_path_nor_an_unknown_model_is_written_down() -> None:
    record = decision(route="/v1/sk-secret", model="prompt text", reason=Reason.NOT_FOUND).record()
    assert (record["route"], record["model"]) == ("other", None)


def test_the_log_remembers_the_newest_and_finds_them_by_id() -> None:
    log = DecisionLog(lambda _: None, history=3)
    for number in range(5):
        log.write(decision(f"req_{number}"))
    assert [record["request_id"] for record in log.last(10)] == ["req_4", "req_3", "req_2"]
    assert [record["request_id"] for record in log.last(1)] == ["req_4"]
    assert log.last(0) == log.last(-1) == []
    assert log.find("req_1") == []
    assert [record["request_id"] for record in log.find("req_3")] == ["req_3"]


def test_of_two_requests_with_one_id_the_newer_is_found_first() -> None:
    log = DecisionLog(lambda _: None, history=3)
    log.write(decision("same", status=429))
    log.write(decision("same", status=503))
    log.write(decision("another", status=413))
    assert [record["status"] for record in log.find("same")] == [503, 429]


def test_one_query_lists_no_more_than_its_bound() -> None:
    log = DecisionLog(lambda _: None, history=2 * MAX_LISTED)
    for _ in range(2 * MAX_LISTED):
        log.write(decision())
    assert len(log.last(2 * MAX_LISTED)) == MAX_LISTED
    assert len(log.find("req_1")) == MAX_LISTED


def test_a_changed_history_keeps_the_newest() -> None:
    log = DecisionLog(lambda _: None, history=5)
    for number in range(5):
        log.write(decision(f"req_{number}"))
    log.use_history(2)
    assert [record["request_id"] for record in log.last(9)] == ["req_4", "req_3"]
