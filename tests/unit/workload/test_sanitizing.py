"""What is left of a decision log, and that the proof finds what should not be."""

import hmac
from collections.abc import Iterable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.logs import logged
from llmshed.admission.request import Lane
from llmshed.errors import TraceError
from llmshed.workload.logged import LoggedRequest
from llmshed.workload.readers.sanitized import COLUMNS
from llmshed.workload.sanitizing import KEY_BYTES, prove, sanitized

KEY = bytes(range(KEY_BYTES))


def written(tries: Iterable[LoggedRequest]) -> bytes:
    return "\n".join(sanitized(tries, KEY)).encode()


def log(*lines: Any) -> list[bytes]:
    return [b"\n".join(orjson.dumps(line) for line in lines)]


def test_offsets_lanes_lengths_and_hashes_are_left() -> None:
    rows = written(
        [
            logged(0, tenant="acme", prompt_tokens=(100, 20), copies=2, output_tokens=28, asked_output_tokens=64),
            logged(0.25, tenant="acme", lane=Lane.BULK, prompt_tokens=(7,), output_tokens=3, asked_output_tokens=None),
        ]
    ).decode()
    tenant = "t" + hmac.new(KEY, b"acme", "sha256").hexdigest()[:16]
    assert rows.split("\n") == [
        ",".join(COLUMNS),
        f"0.000000,interactive,{tenant},60,64,7,4",
        f"0.250000,bulk,{tenant},7,,3,1",
    ]


def test_retries_are_one_request_and_what_was_not_served_tells_no_output() -> None:
    tries = [
        logged(0, "refused", fingerprint="f", output_tokens=None),
        logged(2, "refused", fingerprint="f", output_tokens=None),
        logged(3, "failed", fingerprint="g", output_tokens=5),
        logged(4, "cancelled", fingerprint="h", output_tokens=6),
    ]
    outputs = [row.split(",")[5] for row in written(tries).decode().split("\n")[1:]]
    assert outputs == ["0", "0", "6"]


def test_the_proof_counts_what_it_read() -> None:
    output = written([logged(0, tenant="acme"), logged(1, tenant="other"), logged(2, tenant="acme", lane=Lane.BULK)])
    proof = prove([output], log({"tenant": "acme", "lane": "bulk", "prefix_blocks": ["0123456789abcdef"], "n": 1}))
    assert (proof.requests, dict(proof.lanes), len(proof.tenants)) == (3, {"interactive": 2, "bulk": 1}, 2)
    assert proof.strings == 3


GOOD = "0.000000,interactive,t0123456789abcdef,60,64,7,4"


@pytest.mark.parametrize(
    "row",
    [
        GOOD + ",acme",
        GOOD.replace("t0123456789abcdef", "acme"),
        GOOD.replace("interactive", "secret"),
        GOOD.replace("60", "60 "),
        GOOD.replace("0.000000", "2026-01-01"),
        GOOD.replace("t0123456789abcdef", "t0123456789ABCDEF"),
    ],
)
def test_a_line_of_another_form_fails_the_proof(row: str) -> None:
    with pytest.raises(TraceError, match="another form"):
        prove([f"{','.join(COLUMNS)}\n{row}\n".encode()], log({}))


@pytest.mark.parametrize("header", ["", "acme," + ",".join(COLUMNS)])
def test_another_header_fails_the_proof(header: str) -> None:
    with pytest.raises(TraceError, match="begins with"):
        prove([f"{header}\n{GOOD}\n".encode()], log({}))


@pytest.mark.parametrize("told", ["t0123456789abcdef", "123456789abc", "6789abcd"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_string_of_the_log_is_found_however_deep_it_stood(told: str, nested: bool) -> None:  # noqa: FBT001 - a case
    line = {"a": [{"b": told}]} if nested else {"request_id": told}
    with pytest.raises(TraceError, match=r"line 2 of the log"):
        prove([f"{','.join(COLUMNS)}\n{GOOD}\n".encode()], log({}, line))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=5))
def test_no_name_of_a_log_is_left(names: list[tuple[str, str, str]]) -> None:
    tries = [
        logged(at, tenant=tenant, session=session, fingerprint=fingerprint)
        for at, (tenant, session, fingerprint) in enumerate(names)
    ]
    lines = log(*({"tenant": tenant, "session": session, "id": other} for tenant, session, other in names))
    proof = prove([written(tries)], lines)
    assert proof.strings == 3 * len(names)
