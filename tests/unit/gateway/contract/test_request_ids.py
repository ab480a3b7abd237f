"""Which of a client's ids are used."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmshed.gateway.contract.request_ids import client_request_id_of, fresh_request_id, request_id_of


@pytest.mark.parametrize("given_id", ["a", "A-9_.~", "x" * 128])
def test_a_harmless_id_of_the_client_is_kept(given_id: str) -> None:
    assert request_id_of({"x-request-id": given_id}, lambda: "fresh") == given_id


@pytest.mark.parametrize(
    "given_id", ["", "x" * 129, "a b", "a\n", "a\r\nset-cookie: b", "ä", "a/b", "a\x00", "\u0661", "x" * 1_000_000]
)
def test_any_other_id_is_replaced(given_id: str) -> None:
    assert request_id_of({"x-request-id": given_id}, lambda: "fresh") == "fresh"


def test_a_request_without_an_id_gets_one() -> None:
    assert request_id_of({}, lambda: "fresh") == "fresh"


@given(st.text(max_size=200))
def test_what_is_used_always_has_the_harmless_form(given_id: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._~-]{1,128}", request_id_of({"x-request-id": given_id}))


def test_fresh_ids_differ_and_have_the_form_that_is_accepted_back() -> None:
    ids = {fresh_request_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(request_id_of({"x-request-id": fresh}, lambda: "no") == fresh for fresh in ids)


def test_the_trace_id_of_huggingface_hub_is_the_clients_id_for_the_log() -> None:
    assert client_request_id_of({"x-amzn-trace-id": "0b3e-77"}) == "0b3e-77"
    assert client_request_id_of({"x-request-id": "mine", "x-amzn-trace-id": "0b3e-77"}) == "mine"
    assert client_request_id_of({"x-request-id": "a b", "x-amzn-trace-id": "ä"}) is None
