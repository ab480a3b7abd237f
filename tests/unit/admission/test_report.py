import json
import math
from dataclasses import replace

import pytest

from fakes.door import door, policy, request, spec
from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.echo import Arrival
from llmshed.admission.offline import offline_verdict
from llmshed.admission.report import delay_report, verdict_report
from llmshed.admission.verdict import Decision, DelayTerms, QueueTerms, Verdict


def test_a_report_is_plain_json_and_adds_up() -> None:
    asked = request(1, [700, 300], 1_500, copies=2)
    report = json.loads(json.dumps(verdict_report(door(spec(overrun_chunk_tokens=1_024)).assess(asked, 0.0), asked)))
    terms = report["reservation"]
    assert terms["input_tokens"] + terms["output_tokens"] + terms["overrun_tokens"] == report["reservation_tokens"]
    equation = report["equation"]
    assert equation["headroom_tokens"] == (
        equation["gross_ceiling_tokens"]
        - equation["guard_band_tokens"]
        - equation["active_tokens"]
        - equation["queued_tokens"]
    )
    assert report["input_tokens"] == 2_000


def test_absent_terms_are_null() -> None:
    asked = request(1, model="other")
    report = verdict_report(offline_verdict(asked, policy(), spec()), asked)
    assert report["reservation"] is report["equation"] is report["maximums"] is None
    assert report["delay"] is report["window"] is report["queue"] is None
    assert report["fits"] is False


QUEUED = Verdict(
    Decision.QUEUE,
    reservation=Reservation(1_000, 200, 0, 1),
    equation=Equation(10_000, 1_000, 8_000, 500, 3, 64),
    delay=DelayTerms(500, 400, 1.2, 0.3, 0.5, 1.25, 3.0, 0.25),
    queue=QueueTerms(2, 500, 64, 9_000, 54.0),
    arrival=Arrival.FIRST,
)


def test_the_estimate_adds_up_and_its_sentence_says_what_is_lacking() -> None:
    report = json.loads(json.dumps(verdict_report(QUEUED, request(1, 1_000))))
    terms = report["delay"]
    wait = max(terms["release_seconds"], terms["prefill_seconds"]) / terms["share"] * terms["factor"]
    assert terms["wait_seconds"] == pytest.approx(wait)
    assert terms["endless"] == []
    assert report["arrival"] == "first"
    assert "1,200 tokens does not fit: 10,000 gross - 1,000 guard - 8,000 active - 500 queued = 500" in report["detail"]
    assert "would wait for 3.0 s; 2 of 64 requests wait" in report["detail"]


def test_a_wait_behind_prompts_is_told_as_one() -> None:
    behind = replace(QUEUED, delay=DelayTerms(500, 400, 0.0, 1.5, 1.0, 1.0, 1.5, 0.25))
    assert verdict_report(behind, request(1, 1_000))["detail"].startswith("it would wait for 1.5 s behind 400 prompt")


def test_what_has_no_end_is_null_and_named() -> None:
    assert delay_report(DelayTerms(9, 9, math.inf, 0.5, 1.0, 1.0, math.inf, 0.1)) == {
        "tokens_ahead": 9,
        "prefill_tokens_ahead": 9,
        "release_seconds": None,
        "prefill_seconds": 0.5,
        "share": 1.0,
        "factor": 1.0,
        "wait_seconds": None,
        "own_seconds": 0.1,
        "promised_seconds": 0.0,
        "endless": ["release_seconds", "wait_seconds"],
    }


def test_a_running_door_tells_its_queue_and_its_window_too() -> None:
    asked = request(1, 100)
    report = verdict_report(door(spec()).assess(asked, 0.0), asked)
    assert report["queue"]["requests"] == 0
    assert report["window"]["inflight_tokens"] == 0
    assert report["delay"] is None
