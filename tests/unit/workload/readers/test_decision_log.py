"""The gateway's own log as traffic: what is taken of a line, what is left out, and how a broken line is told."""

import pytest

from fakes.logs import BEGAN, line
from fakes.traces import read_text, seeded
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.admission.verdict import Decision, Verdict
from llmshed.errors import TraceError
from llmshed.observability.decisions import DecisionLine, DecisionLog, Waits
from llmshed.observability.endings import Ending
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.workload.readers.decision_log import FOLDED, SCHEMA, read_decision_log, read_logged
from llmshed.workload.readers.reading import Reading
from llmshed.workload.request import TracedRequest


def test_a_line_as_the_gateway_writes_it_becomes_the_request_that_it_tells_of() -> None:
    written: list[bytes] = []
    verdict = Verdict(
        decision=Decision.ADMIT,
        intent=Intent.INTERACTIVE,
        priority_class=PriorityClass.HIGH,
        lane=Lane.INTERACTIVE,
        output_ceiling_tokens=64,
    )
    told = DecisionLine(
        time_seconds=BEGAN,
        request_id="r",
        route="/generate",
        status=200,
        ending=Ending.FINISHED,
        termination="--",
        tenant="acme",
        streamed=True,
        prompt_tokens=(700,),
        asked_output_tokens=64,
        output_tokens=20,
        fingerprint="f" * 24,
        session="5e55",
        prefix_blocks=("00b10c", "b10d"),
        waits=Waits(0.001, 0.0, 0.001, 0.05, 0.02, 0.5),
    ).with_verdict(verdict)
    DecisionLog(written.append, 1).write(told)
    assert read_text(read_decision_log, written[0]) == [
        TracedRequest(
            at_seconds=0.0,
            input_tokens=700,
            true_output_tokens=20,
            asked_output_tokens=64,
            tenant="acme",
            intent=Intent.INTERACTIVE,
            priority_class=PriorityClass.HIGH,
            session="5e55",
            blocks=PromptBlocks((0xB10C, 0xB10D), 256),
        )
    ]
    (logged,) = read_logged(written)
    assert (logged.ttft_seconds, logged.tpot_seconds, logged.total_seconds) == (0.05, 0.02, 0.5)
    assert (logged.fingerprint, logged.ceiling_tokens) == ("f" * 24, 64)


def test_requests_come_by_their_arrival_though_lines_come_by_their_end() -> None:
    log = line(3, total_seconds=0.5) + line(0, total_seconds=4.0) + line(2.5, total_seconds=1.75)
    assert [one.at_seconds for one in read_text(read_decision_log, log)] == [0.0, 2.5, 3.0]


def test_a_list_of_prompts_runs_as_so_many_copies_of_their_mean() -> None:
    (one,) = read_text(read_decision_log, line(0, prompt_tokens=[30, 11], copies=3, output_tokens=60))
    assert (one.input_tokens, one.copies, one.true_output_tokens) == (21, 6, 10)


def test_a_prompt_has_no_more_blocks_than_its_tokens_fill() -> None:
    (one,) = read_text(read_decision_log, line(0, prompt_tokens=[600], prefix_blocks=["a", "b", "c"]))
    assert one.blocks == PromptBlocks((10, 11), 256)
    (short,) = read_text(read_decision_log, line(0, prompt_tokens=[200], prefix_blocks=["a"]))
    assert short.blocks is None


def test_what_never_came_before_admission_is_left_out_and_counted_by_its_reason() -> None:
    reading = Reading(seeded())
    log = (
        line(0, "refused", lane=None, prompt_tokens=[], status=400, reason="malformed")
        + line(1, "refused", lane=None, prompt_tokens=[], status=401, reason="unauthenticated", tenant=None)
        + line(2, "refused", prompt_tokens=[], status=413, reason="context_limit")
        + line(3, "refused", lane=None, prompt_tokens=[], status=400, reason="malformed")
        + line(3, "refused", lane=None, prompt_tokens=[], status=400, reason="made-up")
        + line(4, lane=None, prompt_tokens=[], reason=None)
        + line(5)
    )
    assert [one.at_seconds for one in read_text(read_decision_log, log, reading)] == [0.0]
    assert dict(reading.skipped) == {
        "no prompt of a known size (malformed)": 2,
        "no prompt of a known size (unauthenticated)": 1,
        "no prompt of a known size (context_limit)": 1,
        "no prompt of a known size (another reason)": 1,
        "no prompt of a known size": 1,
    }


def test_a_refused_request_has_a_length_like_those_that_were_served_even_after_it() -> None:
    log = line(0, "refused") + b"".join(line(number, output_tokens=40) for number in range(1, 30))
    requests = read_text(read_decision_log, log)
    assert [one.imputed for one in requests] == [True] + [False] * 29
    assert requests[0].true_output_tokens == pytest.approx(40, abs=1)


def test_where_nothing_was_served_a_refused_request_has_no_length_and_is_left_out() -> None:
    reading = Reading(seeded())
    assert read_text(read_decision_log, line(0, "refused"), reading) == []
    assert dict(reading.skipped) == {"no output tokens, and none seen to guess from": 1}


def test_retries_come_as_they_came_unless_a_client_model_makes_them() -> None:
    log = line(0, "refused", fingerprint="f") + line(5, fingerprint="f", output_tokens=31) + line(6, fingerprint="g")
    assert [one.at_seconds for one in read_text(read_decision_log, log)] == [0.0, 5.0, 6.0]
    reading = Reading(seeded(), fold_retries=True)
    folded = read_text(read_decision_log, log, reading)
    assert [(one.at_seconds, one.true_output_tokens, one.imputed) for one in folded] == [(0, 31, False), (6, 20, False)]
    assert dict(reading.skipped) == {FOLDED: 1}


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (b"{", f"line 2: not a line of {SCHEMA}: '{{'"),
        (b"[]", f"line 2: not a line of {SCHEMA}"),
        (line(1, schema="llmshed.decision/2"), f"line 2: not a line of {SCHEMA}"),
        (line(1, ending="lost"), "line 2: ending is 'lost': input should be 'finished'"),
        (line(1, prompt_tokens=[-1]), "line 2: prompt_tokens.0 is -1: input should be greater than or equal to 0"),
        (line(1, copies=10**9), "line 2: copies is 1000000000: input should be less than or equal to 1000"),
        (line(1, output_tokens="7"), "line 2: output_tokens is '7': input should be a valid integer"),
        (line(1, lane="express"), "line 2: lane is 'express': input should be 'interactive'"),
        (line(1, total_seconds=-1.0), "line 2: total_seconds is -1.0: input should be greater than or equal to 0"),
        (line(1, prefix_blocks=["x"]), "line 2: prefix_blocks.0 is 'x': string should match pattern"),
        (line(1).replace(b'"status":200,', b""), "line 2: status is missing; each line"),
        (line(1).replace(b"0.05", b"NaN", 1), "line 2: "),
        (line(1, tenant=""), "line 2: tenant is '': string should have at least 1 character"),
        (b"\xff\n", "line 2: byte 1 is not UTF-8"),
    ],
)
def test_a_broken_line_is_told_with_its_number_and_what_is_accepted(broken: bytes, told: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_text(read_decision_log, line(0) + broken)
    assert str(caught.value).startswith(told)


def test_lines_in_no_order_of_a_log_are_told() -> None:
    with pytest.raises(TraceError, match="line 3: arrives 7200 s before the request above it; sort the trace"):
        read_text(read_decision_log, line(9000) + line(13_000) + line(1800))


def test_one_seed_reads_one_traffic() -> None:
    log = b"".join(line(at, "refused" if at % 2 else "finished", output_tokens=at % 50 or None) for at in range(400))
    runs = [list(read_decision_log([log], Reading(seeded(3)))) for _ in range(3)]
    assert runs[0] == runs[1] == runs[2]
