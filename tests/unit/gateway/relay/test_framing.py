"""What makes the length of an answer ambiguous, and which of its headers leave their hop."""

import pytest
from multidict import CIMultiDict

from llmshed.gateway.relay.framing import end_to_end, framing_fault

LENGTH, CODING = "Content-Length", "Transfer-Encoding"


@pytest.mark.parametrize(
    "headers",
    [[], [(LENGTH, "2")], [(CODING, "chunked")], [(CODING, " Chunked ")]],
)
def test_one_reading_is_no_fault(headers: list[tuple[str, str]]) -> None:
    assert framing_fault(CIMultiDict(headers)) is None


@pytest.mark.parametrize(
    ("headers", "fault"),
    [
        ([(LENGTH, "2"), (LENGTH, "2")], "has two lengths"),
        ([(LENGTH, "2"), (CODING, "chunked")], "has both a length and a transfer coding"),
        ([(CODING, "gzip")], "has a transfer coding other than chunked"),
        ([(CODING, "identity, chunked")], "has a transfer coding other than chunked"),
        ([(CODING, "chunked"), (CODING, "chunked")], "has a transfer coding other than chunked"),
    ],
)
def test_two_readings_are_told(headers: list[tuple[str, str]], fault: str) -> None:
    assert framing_fault(CIMultiDict(headers)) == fault


def test_headers_of_the_hop_stay_and_so_do_those_that_it_names_in_any_line() -> None:
    headers = CIMultiDict(
        [
            ("Connection", "keep-alive, X-One"),
            ("connection", "x-two"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Authenticate", "Basic"),
            ("TRAILER", "X-T"),
            ("X-One", "1"),
            ("X-Two", "2"),
            ("X-Three", "3"),
            ("X-Three", "4"),
        ]
    )
    assert list(end_to_end(headers).items()) == [("X-Three", "3"), ("X-Three", "4")]
