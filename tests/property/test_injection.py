"""Ids, names and sentences from outside, written into headers and events: never a line or an event more."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import orjson
import pytest
from aiohttp.http_writer import _serialize_headers
from multidict import CIMultiDict

from llmshed.admission.budget import Reservation
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane
from llmshed.admission.verdict import Decision, Verdict
from llmshed.engines.base import Dialect
from llmshed.gateway.contract.answer_headers import answer_headers
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.contract.refusals import ContractWriter
from llmshed.gateway.contract.request_ids import request_id_of
from llmshed.gateway.relay.headers import client_headers

PIECES = (
    "\r\n", "\n", "\r", "\x00", "\x08", "\x0b", "\x0c", "\x1b[31m", "\x1c", "\x7f", "\x85", "\u2028", "\u2029",
    "\ud800", "\udfff", "\udc0d", "\udc0a", "\u010a", "\u010d", "\u560a", "\u202e", "\ufeff", "\t", " ",
    ":", ";", ",", '"', "\\",
    "'", "{", "}", "]]>", "%0d%0a", "\\r\\n", "\\u000a", "a", "req_1", "\u00e9", "\u6771", "\U0001f4a5", "x" * 300,
    "Set-Cookie: a=1", "Content-Length: 0", "HTTP/1.1 200 OK", "data: [DONE]", "event: error", "id: 1", "retry: 0",
)  # fmt: skip
ADMITTED = Verdict(Decision.ADMIT, lane=Lane.BULK, output_ceiling_tokens=5, reservation=Reservation(400, 5, 0, 1))


@pytest.mark.parametrize(
    "number",
    [2_000, pytest.param(10_000, marks=pytest.mark.slow), pytest.param(100_000, marks=pytest.mark.soak)],
)
def test_no_text_opens_a_line_or_an_event(number: int) -> None:
    draw = Random(8)  # noqa: S311 - a seed, so that a failure can be repeated
    contract = ContractWriter(draw.random, 0.5, 60.0)
    reasons, dialects = tuple(Reason), tuple(Dialect)

    def text() -> str:
        return "".join(draw.choices(PIECES, k=draw.randrange(7)))

    for round_ in range(number):
        request_id, name, sentence = text(), text(), text()
        reason, dialect = draw.choice(reasons), dialects[round_ % 2]
        problem = Problem(reason, sentence, param=name, model=name, error_type=sentence)
        told = contract.refusal(problem, dialect, request_id)
        _hold_lines(told.headers)
        assert b"\n" not in told.body
        event = contract.error_event(problem, dialect, request_id)
        assert event.endswith(b"\n\n")
        assert event.count(b"\n") == 2
        assert len(event.decode().splitlines()) == 2  # by every line break that Python knows
        orjson.loads(event.removeprefix(b"data: "))
        verdict = replace(ADMITTED, replica=name, profile=sentence)
        own = answer_headers(request_id_of({"x-request-id": request_id}), verdict, input_tokens=400, model=name)
        _hold_lines(client_headers({"X-Engine": sentence} if round_ % 2 else {}, own))


def _hold_lines(headers: Mapping[str, str]) -> None:
    """Write headers as the server does, and count its lines."""
    fields = CIMultiDict(headers.items())
    raw = _serialize_headers("HTTP/1.1 400 Bad Request", fields)
    lines = len(fields) + 2
    assert (raw.count(b"\r\n"), raw.count(b"\r"), raw.count(b"\n"), raw.count(b"\x00")) == (lines, lines, lines, 0)
