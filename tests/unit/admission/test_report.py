import json

from fakes.door import door, policy, request, spec
from llmshed.admission.offline import offline_verdict
from llmshed.admission.report import verdict_report


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
    assert report["fits"] is False
