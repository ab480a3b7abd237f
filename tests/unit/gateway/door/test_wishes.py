import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from llmshed.admission.reasons import Reason
from llmshed.admission.request import Intent, PriorityClass
from llmshed.engines.base import BodyError, Call, Route
from llmshed.gateway.door.wishes import Wishes, read_deadlines, read_wishes


def headers(*pairs: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(pairs))


def call(declared_intent: str | None = None, session_hint: str | None = None, *, streamed: bool = True) -> Call:
    return Call(
        Route.CHAT,
        {},
        streamed=streamed,
        model=None,
        prompts=(),
        declared_intent=declared_intent,
        session_hint=session_hint,
    )


def test_silence_wishes_for_nothing() -> None:
    assert read_wishes(headers(), call()) == Wishes()


def test_headers_go_before_the_words_of_the_body() -> None:
    sent = headers(
        ("X-LLMShed-Intent", "interactive"), ("x-llmshed-class", "low"), ("x-llmshed-session", "from-header")
    )
    assert read_wishes(sent, call("bulk", "from-body")) == Wishes(
        Intent.INTERACTIVE, PriorityClass.LOW, "from-header", None
    )
    assert read_wishes(headers(), call("bulk", "from-body")) == Wishes(Intent.BULK, None, "from-body", None)


@pytest.mark.parametrize("name", ["x-llmshed-intent", "x-llmshed-class"])
@pytest.mark.parametrize("value", ["", "urgent", "HIGH ", "bulk,interactive"])
def test_an_unknown_word_is_malformed_and_names_what_is_accepted(name: str, value: str) -> None:
    with pytest.raises(BodyError, match=f"{name}: must be one of ") as caught:
        read_wishes(headers((name, value)), call())
    assert caught.value.reason is Reason.MALFORMED


def test_an_unknown_word_in_the_body_is_malformed_too() -> None:
    with pytest.raises(BodyError, match=r"metadata\.llmshed_intent: must be one of interactive, bulk"):
        read_wishes(headers(), call("urgent"))


def test_one_header_with_two_values_has_two_readings() -> None:
    with pytest.raises(BodyError, match="different values"):
        read_wishes(headers(("x-llmshed-class", "low"), ("X-Llmshed-Class", "high")), call())
    same = headers(("x-llmshed-class", "low"), ("x-llmshed-class", "low"))
    assert read_wishes(same, call()).priority_class is PriorityClass.LOW


@pytest.mark.parametrize("session", ["", "x" * 513])
def test_a_session_has_a_bounded_length(session: str) -> None:
    with pytest.raises(BodyError, match="x-llmshed-session: must have 1 to 512 characters"):
        read_wishes(headers(("x-llmshed-session", session)), call())


@pytest.mark.parametrize(
    ("sent", "whole", "beginning"),
    [
        ((("x-llmshed-deadline-ms", "1500"),), 1.5, None),
        ((("x-envoy-expected-rq-timeout-ms", "250"),), 0.25, None),
        ((("grpc-timeout", "5S"),), 5.0, None),
        ((("grpc-timeout", "100m"),), 0.1, None),
        ((("grpc-timeout", "2H"),), 7200.0, None),
        ((("x-slo-ttft-ms", "800"),), None, 0.8),
        ((("x-stainless-read-timeout", "7.5"),), None, None),
        ((("x-llmshed-deadline-ms", "9000"), ("grpc-timeout", "1M"), ("x-slo-ttft-ms", "2000")), 9.0, 2.0),
        ((("x-envoy-expected-rq-timeout-ms", "8000"), ("grpc-timeout", "7S")), 7.0, None),
        ((("x-slo-ttft-ms", "2000"), ("x-stainless-read-timeout", "1")), None, 2.0),
        ((("x-envoy-expected-rq-timeout-ms", "0"), ("grpc-timeout", "0S")), None, None),
        ((("x-slo-ttft-ms", "0"),), None, None),
        ((("x-envoy-expected-rq-timeout-ms", "soon"), ("grpc-timeout", "5"), ("x-slo-ttft-ms", "-1")), None, None),
        ((("grpc-timeout", "123456789S"),), None, None),
        ((("x-slo-ttft-ms", "\u0661\u0662"),), None, None),
        ((), None, None),
    ],
)
def test_of_each_kind_the_smallest_readable_deadline_holds(
    sent: tuple[tuple[str, str], ...], whole: float | None, beginning: float | None
) -> None:
    assert read_deadlines(headers(*sent)) == (
        None if whole is None else pytest.approx(whole),
        None if beginning is None else pytest.approx(beginning),
    )


@pytest.mark.parametrize(
    ("streamed", "sent", "deadline", "first_token"),
    [
        (True, {"x-llmshed-deadline-ms": "9000", "x-slo-ttft-ms": "2000"}, 9.0, 2.0),
        (True, {"x-slo-ttft-ms": "2000"}, None, 2.0),
        (False, {"x-llmshed-deadline-ms": "9000", "x-slo-ttft-ms": "2000"}, 2.0, None),
        (False, {"x-llmshed-deadline-ms": "1000", "x-slo-ttft-ms": "2000"}, 1.0, None),
        (False, {"x-stainless-read-timeout": "7"}, None, None),
        (True, {"x-stainless-read-timeout": "7"}, None, None),
        (False, {"x-llmshed-deadline-ms": "1000"}, 1.0, None),
    ],
)
def test_an_answer_that_is_not_streamed_begins_with_its_end(
    *, streamed: bool, sent: dict[str, str], deadline: float | None, first_token: float | None
) -> None:
    wishes = read_wishes(headers(*sent.items()), call(streamed=streamed))
    assert (wishes.deadline_seconds, wishes.first_token_seconds) == (deadline, first_token)


@pytest.mark.parametrize("value", ["0", "-5", "1.5", "soon", "", "1e3", "9" * 13, "\u0663"])
def test_our_own_deadline_header_is_never_guessed(value: str) -> None:
    with pytest.raises(BodyError, match="x-llmshed-deadline-ms: must be a whole number of milliseconds"):
        read_deadlines(headers(("x-llmshed-deadline-ms", value)))


@pytest.mark.parametrize("streamed", [True, False])
def test_the_silence_that_a_client_bears_is_no_deadline(*, streamed: bool) -> None:
    sent = headers(("x-stainless-read-timeout", "7.5"), ("x-slo-ttft-ms", "9000"))
    assert read_wishes(sent, call(streamed=streamed)) == Wishes(
        deadline_seconds=None if streamed else 9.0, first_token_seconds=9.0 if streamed else None, silence_seconds=7.5
    )


@pytest.mark.parametrize(
    "text", ["0", "NOT_GIVEN", "None", "inf", "nan", "1e3", "", "-1", ".5", "1_0", "\u0663", "9" * 10]
)
def test_a_silence_that_nobody_set_or_wrote_as_a_number_is_ignored(text: str) -> None:
    assert read_wishes(headers(("x-stainless-read-timeout", text)), call()) == Wishes()
