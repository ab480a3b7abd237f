"""What a refused client reads: statuses, headers and bodies of docs/contract.md."""

import random
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.admission.reasons import REASON_TABLE, Reason, Retry
from llmshed.admission.request import Lane
from llmshed.admission.verdict import AcceptedMaximums, Advice
from llmshed.engines.base import Dialect
from llmshed.gateway.contract.answer_headers import Timings
from llmshed.gateway.contract.problem import PassedTime, Problem, Timeout
from llmshed.gateway.contract.refusals import Answer, ContractWriter
from llmshed.gateway.contract.request_ids import request_id_of

MAXIMUMS = AcceptedMaximums(max_input_tokens=4096, max_output_tokens=1024, max_total_tokens=8192)
BUSY = Problem(
    Reason.TOKEN_BUDGET_EXHAUSTED,
    "interactive lane token budget exhausted",
    lane=Lane.INTERACTIVE,
    maximums=MAXIMUMS,
    input_tokens=14_000,
    requested_output_tokens=4_000,
    retry_after_seconds=2.0,
    model="acme/chat-7b",
    budget_tokens=86_400,
)
ALL_CASES = [(reason, dialect) for reason in Reason for dialect in Dialect]


def writer(draw: float = 0.2085, jitter_ratio: float = 1.0) -> ContractWriter:
    return ContractWriter(lambda: draw, jitter_ratio, 60.0)


def body_of(answer: Answer) -> Any:
    return orjson.loads(answer.body)


def extras_of(answer: Answer, dialect: Dialect) -> Any:
    body = body_of(answer)
    return body["error"] if dialect is Dialect.OPENAI else body


@pytest.mark.parametrize("which", PassedTime)
def test_a_timeout_tells_which_time_passed_beside_the_accepted_maximums(which: PassedTime) -> None:
    problem = Problem(
        Reason.UPSTREAM_TIMEOUT, "The engine was silent", maximums=MAXIMUMS, timeout=Timeout(which, 119.999)
    )
    answer = writer().refusal(problem, Dialect.NATIVE, "req_1")
    body = body_of(answer)
    assert body["timeout"] == {"which": which, "seconds": 119.999}
    assert (
        f" Limits: max_input_tokens=4096 max_output_tokens=1024 max_total_tokens=8192 {which}_seconds=119.999. ["
        in (body["error"])
    )
    alone = body_of(writer().refusal(replace(problem, maximums=None), Dialect.NATIVE, "req_1"))
    assert f" Limits: {which}_seconds=119.999. [" in alone["error"]


def test_a_busy_answer_on_an_openai_route_has_the_whole_documented_shape() -> None:
    answer = writer().refusal(BUSY, Dialect.OPENAI, "req_1")
    assert answer.status == 429
    assert answer.retry_after_seconds == 2.417
    assert body_of(answer) == {
        "error": {
            "message": "Model is overloaded: interactive lane token budget exhausted; retry in 3 s."
            " Limits: max_input_tokens=4096 max_output_tokens=1024 max_total_tokens=8192."
            " [llmshed reason=token_budget_exhausted lane=interactive request_id=req_1]",
            "type": "rate_limit_error",
            "param": None,
            "code": "token_budget_exhausted",
            "reason": "token_budget_exhausted",
            "lane": "interactive",
            "request_id": "req_1",
            "retry_after_ms": 2417,
            "limits": {"max_input_tokens": 4096, "max_output_tokens": 1024, "max_total_tokens": 8192},
            "usage": {"input_tokens": 14_000, "requested_output_tokens": 4_000},
            "docs": "docs/contract.md#token_budget_exhausted",
        },
        "error_type": "overloaded",
    }


def test_a_busy_answer_on_a_native_route_keeps_error_a_string_and_the_rest_at_the_top() -> None:
    native = body_of(writer().refusal(BUSY, Dialect.NATIVE, "req_1"))
    openai = body_of(writer().refusal(BUSY, Dialect.OPENAI, "req_1"))["error"]
    assert native.pop("error") == openai.pop("message")
    assert native.pop("error_type") == "overloaded"
    del openai["type"], openai["param"]
    assert native == openai


def test_a_busy_answer_tells_the_wait_in_every_header_that_some_client_reads() -> None:
    headers = writer().refusal(BUSY, Dialect.OPENAI, "req_1").headers
    assert headers["retry-after"] == "3"
    assert headers["retry-after-ms"] == "2417"
    assert headers["ratelimit"] == '"interactive";r=0;t=3'
    assert headers["ratelimit-policy"] == '"interactive";q=86400;llmshed-qu="tokens"'
    assert headers["x-ratelimit-limit-tokens"] == "86400"
    assert headers["x-ratelimit-remaining-tokens"] == "0"
    assert headers["x-ratelimit-reset-tokens"] == "3s"
    assert "x-should-retry" not in headers


@pytest.mark.parametrize(("reason", "dialect"), ALL_CASES)
def test_every_refusal_carries_the_headers_that_all_answers_and_all_refusals_have(
    reason: Reason, dialect: Dialect
) -> None:
    timings = Timings(counting_seconds=0.003, queue_seconds=0.041)
    problem = Problem(reason, "why", lane=Lane.BULK, model="m", allow=("POST",))
    answer = writer().refusal(problem, dialect, "req_1", None, timings)
    expected = {
        "x-request-id": "req_1",
        "request-id": "req_1",
        "x-llmshed-lane": "bulk",
        "x-llmshed-model": "m",
        "server-timing": "tok;dur=3.0, queue;dur=41.0",
        "x-llmshed-reason": reason.value,
        "cache-control": "no-store",
        "content-type": "application/json",
    }
    assert expected.items() <= answer.headers.items()
    assert answer.status == REASON_TABLE[reason].status


@pytest.mark.parametrize(("reason", "dialect"), ALL_CASES)
def test_a_retry_is_invited_only_where_waiting_can_help(reason: Reason, dialect: Dialect) -> None:
    answer = writer().refusal(Problem(reason, "why", retry_after_seconds=5.0), dialect, "r")
    later = REASON_TABLE[reason].retry is Retry.LATER
    assert ("retry-after" in answer.headers) == ("retry-after-ms" in answer.headers) == later
    assert ("retry_after_ms" in extras_of(answer, dialect)) == later
    should_not = not later or reason is Reason.DEADLINE_INFEASIBLE
    assert answer.headers.get("x-should-retry") == ("false" if should_not else None)
    if answer.status in {429, 503}:
        assert later


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason.row.status == 413])
def test_a_413_never_has_a_retry_after_even_when_an_estimate_was_given(reason: Reason) -> None:
    headers = writer().refusal(Problem(reason, "too large", retry_after_seconds=3.0), Dialect.OPENAI, "r").headers
    assert not {"retry-after", "retry-after-ms", "ratelimit"} & set(headers)


@pytest.mark.parametrize("reason", Reason)
def test_the_documented_types_go_with_each_status(reason: Reason) -> None:
    # docs/contract.md: clients of OpenAI read `type`, clients of TGI `error_type`.
    expected = {
        400: ("invalid_request_error", "validation"),
        401: ("authentication_error", "authentication"),
        403: ("permission_error", "validation"),
        404: ("not_found_error", "not_found"),
        405: ("invalid_request_error", "validation"),
        413: ("invalid_request_error", "validation"),
        415: ("invalid_request_error", "validation"),
        431: ("invalid_request_error", "validation"),
        429: ("rate_limit_error", "overloaded"),
        500: ("server_error", "generation"),
        502: ("server_error", "generation"),
        503: ("server_error", "overloaded"),
        504: ("server_error", "generation"),
    }
    body = body_of(writer().refusal(Problem(reason, "why"), Dialect.OPENAI, "r"))
    assert (body["error"]["type"], body["error_type"]) == expected[reason.row.status]
    assert body["error"]["code"] == reason.value


def test_a_401_names_the_scheme_and_a_405_the_methods() -> None:
    denied = writer().refusal(Problem(Reason.UNAUTHENTICATED, "no key"), Dialect.NATIVE, "r")
    assert denied.headers["www-authenticate"].startswith("Bearer")
    wrong = writer().refusal(Problem(Reason.METHOD_NOT_ALLOWED, "no", allow=("GET", "HEAD")), Dialect.NATIVE, "r")
    assert wrong.headers["allow"] == "GET, HEAD"


def test_an_engines_own_status_and_words_are_passed_on() -> None:
    problem = Problem(
        Reason.UNSUPPORTED_FIELD, "`top_p` must be < 1.0", status=422, error_type="validation", param="top_p"
    )
    answer = writer().refusal(problem, Dialect.OPENAI, "r")
    error = body_of(answer)["error"]
    assert answer.status == 422
    assert (error["type"], error["param"]) == ("invalid_request_error", "top_p")
    assert "`top_p` must be < 1.0" in error["message"]
    assert body_of(answer)["error_type"] == "validation"
    assert answer.headers["x-should-retry"] == "false"


def test_advice_is_a_list_for_machines_and_a_sentence_for_people() -> None:
    problem = Problem(Reason.LANE_LIMIT, "too long", advice=(Advice.SUMMARISE, Advice.SPLIT, Advice.DEDICATED_POOL))
    error = body_of(writer().refusal(problem, Dialect.OPENAI, "r"))["error"]
    assert error["advice"] == ["summarise", "split", "dedicated_pool"]
    assert "Summarise the input, split it into several requests or use a dedicated pool." in error["message"]


@pytest.mark.parametrize(
    "accept",
    ["application/problem+json", "text/html, Application/Problem+JSON;q=0.5", "application/problem+json; q=1"],
)
def test_problem_json_is_served_to_who_asks_for_it(accept: str) -> None:
    answer = writer().refusal(BUSY, Dialect.OPENAI, "req_1", accept)
    body = body_of(answer)
    assert answer.headers["content-type"] == "application/problem+json"
    assert body["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert (body["title"], body["status"]) == ("Too Many Requests", 429)
    assert body["violated-policies"] == ["interactive"]
    assert (body["reason"], body["retry_after_ms"]) == ("token_budget_exhausted", 2417)
    assert body["detail"].startswith("Model is overloaded: interactive lane token budget exhausted")


@pytest.mark.parametrize(
    "accept",
    [
        None,
        "",
        "*/*",
        "application/*",
        "application/json",
        "application/problem+json;q=0",
        "application/problem+json; q=0.0",
        "application/problem+jsonx",
        ",;,",
    ],
)
def test_no_wildcard_brings_problem_json_since_clients_show_nothing_of_it(accept: str | None) -> None:
    answer = writer().refusal(BUSY, Dialect.NATIVE, "r", accept)
    assert answer.headers["content-type"] == "application/json"
    assert isinstance(body_of(answer)["error"], str)


def test_lost_capacity_and_plain_mistakes_have_their_own_problem_types() -> None:
    down = body_of(
        writer().refusal(Problem(Reason.NO_REPLICA, "down"), Dialect.NATIVE, "r", "application/problem+json")
    )
    assert down["type"] == "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
    bad = body_of(writer().refusal(Problem(Reason.MALFORMED, "bad"), Dialect.NATIVE, "r", "application/problem+json"))
    assert (bad["type"], bad["title"], bad["status"]) == ("about:blank", "Bad Request", 400)
    odd = Problem(Reason.UPSTREAM_ERROR, "odd", status=599)
    assert body_of(writer().refusal(odd, Dialect.NATIVE, "r", "application/problem+json"))["status"] == 599


@pytest.mark.parametrize("dialect", Dialect)
def test_a_late_failure_is_one_unnamed_event_of_one_line(dialect: Dialect) -> None:
    problem = Problem(Reason.UPSTREAM_ERROR, "the replica\r\n\r\ndata: [DONE]\n\nfell silent")
    event = writer().error_event(problem, dialect, "req_1")
    assert event.startswith(b"data: {")
    assert event.endswith(b"}\n\n")
    assert event.count(b"\n") == 2
    body = orjson.loads(event.removeprefix(b"data: "))
    text = body["error"]["message"] if dialect is Dialect.OPENAI else body["error"]
    assert "a retry may pay twice" in text
    assert body["error_type"] == "generation"


@given(st.text(), st.text(), st.text(), st.text(), st.sampled_from(ALL_CASES))
def test_no_text_of_a_client_or_an_engine_can_add_a_header_line_or_an_event(
    message: str, model: str, request_id: str, param: str, case: tuple[Reason, Dialect]
) -> None:
    reason, dialect = case
    problem = Problem(reason, message, model=model, param=param, error_type=message, maximums=MAXIMUMS)
    answer = writer().refusal(problem, dialect, request_id)
    for name, value in answer.headers.items():
        assert (name + value).isascii()
        assert (name + value).isprintable()
    assert isinstance(orjson.loads(answer.body), dict)
    event = writer().error_event(problem, dialect, request_id)
    # str.splitlines knows more line ends than any client: CR, LF, VT, FF, U+0085, U+2028, U+2029
    assert event.decode().removesuffix("\n\n").splitlines() == [event.decode()[:-2]]


def test_a_lone_surrogate_in_a_text_is_no_crash() -> None:
    problem = Problem(Reason.MALFORMED, "bad \ud800 text", param="\udfff", model="\ud800")
    assert b"bad   text" in writer().refusal(problem, Dialect.OPENAI, "r\ud800").body


@pytest.mark.parametrize(
    "names", [pytest.param(20_000, marks=pytest.mark.slow), pytest.param(100_000, marks=pytest.mark.soak)]
)
def test_thousands_of_hostile_names_add_no_header_line_and_no_event(names: int) -> None:
    rng = random.Random(17)  # noqa: S311 - the same search each time
    pieces = [
        "a",
        "\r",
        "\n",
        "\r\n",
        "\n\n",
        "data: ",
        "x-evil: 1",
        ":",
        "\0",
        "\x1b[2J",
        "\x85",
        "\u2028",
        "ä",
        "\ud800",
        '"',
        "}",
    ]
    contract = writer()
    for _ in range(names):
        hostile = "".join(rng.choices(pieces, k=rng.randint(0, 12)))
        reason, dialect = rng.choice(ALL_CASES)
        problem = Problem(reason, hostile, model=hostile, param=hostile, error_type=hostile)
        answer = contract.refusal(problem, dialect, request_id_of({"x-request-id": hostile}))
        assert all(value.isascii() and value.isprintable() for value in answer.headers.values())
        event = contract.error_event(problem, dialect, hostile)
        assert event.count(b"\n") == 2
        assert b"\r" not in event
