"""By what a repeat is known."""

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from llmshed.admission.request import Intent, PriorityClass
from llmshed.gateway.door.repeats import declared_repeats, idempotency_key, request_name
from llmshed.gateway.door.wishes import Wishes
from llmshed.gateway.hashing import Hasher

HASHER = Hasher(b"secret")


def headers(*pairs: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(pairs))


@pytest.mark.parametrize(
    ("told", "repeats"),
    [
        (["0"], 0),
        (["2"], 2),
        (["9999"], 1000),
        (["2", "2"], 2),
        (["2", "3"], None),
        ([], None),
        ([""], None),
        (["-1"], None),
        (["1.5"], None),
        (["10000"], None),
        (["²"], None),
        (["7" * 5000], None),
    ],
)
def test_tries_are_read_where_they_are_a_small_number(told: list[str], repeats: int | None) -> None:
    assert declared_repeats(headers(*(("X-Stainless-Retry-Count", one) for one in told))) == repeats


@pytest.mark.parametrize(
    ("told", "key"),
    [
        ("7f3a-1", "7f3a-1"),
        ('"7f3a-1"', "7f3a-1"),
        (' "7f3a-1" ', "7f3a-1"),
        (r'"a\"b\\c"', r"a\"b\\c".replace("\\\\", "\0").replace("\\", "").replace("\0", "\\")),
        ('a"b', 'a"b'),
        ("k" * 255, "k" * 255),
        ("k" * 256, None),
        (f'"{"k" * 255}"', "k" * 255),
        (f'"{"k" * 256}"', None),
        ("", None),
        ('""', None),
        ('"', None),
        ('"open', None),
        ('"a";v=1', None),
        ("two words", None),
        ("ключ", None),
        ("a\x7f", None),
    ],
)
def test_a_key_is_the_same_quoted_or_bare_and_anything_unreadable_is_none(told: str, key: str | None) -> None:
    assert idempotency_key(headers(("Idempotency-Key", told))) == key


def test_two_keys_are_none() -> None:
    assert idempotency_key(headers(("Idempotency-Key", "a"), ("Idempotency-Key", "b"))) is None
    assert idempotency_key(headers()) is None


def name(fingerprint: str, *pairs: tuple[str, str], tenant: str = "acme", wishes: Wishes | None = None) -> str:
    return request_name(HASHER, tenant, "/generate", headers(*pairs), fingerprint, wishes or Wishes())


def test_a_request_is_named_by_its_body_and_by_what_it_wishes_to_be() -> None:
    names = {
        name("f1"),
        name("f2"),
        name("f1", wishes=Wishes(intent=Intent.BULK)),
        name("f1", wishes=Wishes(priority_class=PriorityClass.LOW)),
        name("f1", wishes=Wishes(intent=Intent.BULK, priority_class=PriorityClass.LOW)),
    }
    assert len(names) == 5
    assert name("f1", wishes=Wishes(deadline_seconds=3.0)) == name("f1", wishes=Wishes(deadline_seconds=2.0))


def test_a_key_stands_for_the_body_within_its_tenant() -> None:
    key = ("Idempotency-Key", '"order-1"')
    assert name("f1", key) == name("f2", key) == name("f1", ("Idempotency-Key", "order-1"))
    assert len({name("f1"), name("f1", key), name("f1", key, tenant="other")}) == 3
    assert "order" not in name("f1", key)
