"""What a self-test makes of what it measured, and that it finds a tokenizer that is slow."""

from dataclasses import replace

import orjson
import pytest

from llmshed.errors import TokenizerError
from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.bombs import BOMBS, bomb, prose
from llmshed.tokenizing.files import ChatTemplate
from llmshed.tokenizing.load import embedded
from llmshed.tokenizing.paces import Pace, paces
from llmshed.tokenizing.selftest import dear, of_paces, ratios_to_prose, selftest


def pace(name: str, size_bytes: int, seconds: float | None, peak_bytes: int = 0, tokens: int = 1) -> Pace:
    """Return what a string took, beside prose of 10 us a byte."""
    if seconds is None:
        return Pace(name, size_bytes)
    return Pace(name, size_bytes, tokens, seconds, size_bytes * 1e-5, peak_bytes)


def test_there_are_22_strings_of_the_size_asked_for() -> None:
    assert len(BOMBS) == 22
    for name, unit in BOMBS.items():
        assert 10_000 - len(unit.encode()) < len(bomb(name, 10_000).encode()) <= 10_000
    assert 0 < len(prose(1_000)) <= 1_000


def test_ratios_are_of_the_time_of_prose_beside_it_in_the_size_asked_for() -> None:
    measured = [pace("prose", 500, 0.005), pace("a", 500, 0.045), pace("prose", 4000, 0.04), pace("a", 2000, 0.06)]
    assert ratios_to_prose(measured, 4000) == {}
    assert ratios_to_prose([*measured, pace("b", 4000, 0.1), pace("c", 4000, None)], 4000) == {"b": 2.5}
    assert ratios_to_prose(measured, 500) == {"a": 9.0}
    busy = pace("b", 4000, 0.1)._replace(prose_seconds=0.1)  # the machine made both dearer
    assert ratios_to_prose([*measured, busy], 4000) == {"b": 1.0}


def test_a_string_of_many_tokens_may_take_half_as_much_again_as_prose_for_each() -> None:
    usual = pace("prose", 4000, 0.04, tokens=1000)  # four bytes a token, and so at most 6 times for each byte
    assert dear([usual, pace("a", 4000, 0.24, tokens=4000)], 4000) == {}
    assert dear([usual, pace("a", 4000, 0.244, tokens=4000)], 4000) == {"a": 6.1}
    assert dear([usual, pace("a", 4000, 0.244, tokens=72_000)], 4000) == {"a": 6.1}  # what grows is not excused by it
    assert dear([usual, pace("a", 4000, 0.204, tokens=3000)], 4000) == {"a": 5.1}
    assert dear([usual, pace("a", 4000, 0.2, tokens=1)], 4000) == {}
    assert dear([pace("a", 4000, 0.204, tokens=4000)], 4000) == {"a": 5.1}


def test_a_string_is_suspect_beyond_five_times_prose_and_when_it_grows_steeper() -> None:
    usual = [pace("prose", 1000, 0.01), pace("prose", 8000, 0.08)]
    assert of_paces([*usual, pace("a", 1000, 0.05), pace("a", 8000, 0.4)]) == []
    (slow,) = of_paces([*usual, pace("a", 1000, 0.05), pace("a", 8000, 0.48)])
    assert (slow.level, slow.kind, slow.detail) == ("warning", "slow", "'a' takes 6.0 times as long as prose")
    (steep,) = of_paces([*usual, pace("a", 1000, 0.01), pace("a", 8000, 0.32)])
    assert "4.0 times as long in the largest size" in steep.detail
    assert of_paces([*usual, pace("a", 1000, 0.001), pace("a", 8000, 0.32)]) == []  # too short to be told from a call


def test_a_string_that_was_given_up_and_memory_beyond_the_bound_are_suspect() -> None:
    usual = [pace("prose", 1000, 0.01)]
    (given_up,) = of_paces([*usual, pace("a", 1000, None)])
    assert given_up.detail == "1,000 bytes of 'a' were given up; what follows was not tried"
    (large,) = of_paces([*usual, pace("a", 1000, 0.01, peak_bytes=301 * 2**20)])
    assert (large.kind, large.detail) == ("memory", "counting took 301 MiB of memory")


@pytest.mark.slow
def test_every_string_is_counted_in_the_child_as_it_is_here() -> None:
    tokenizer = engine_tokenizer(embedded(), "tgi")
    measured = paces(tokenizer, (2_000, 1_000), ("letter", "space"))
    assert [(one.name, one.size_bytes) for one in measured] == [
        ("prose", len(prose(1_000).encode())), ("letter", 1_000), ("space", 1_000),
        ("prose", len(prose(2_000).encode())), ("letter", 2_000), ("space", 2_000),
    ]  # fmt: skip
    right = [len(tokenizer.encode(text).ids) for text in (prose(1_000), "a" * 1_000, " " * 1_000)]
    assert [one.tokens for one in measured[:3]] == right
    assert all(one.seconds is not None and one.seconds >= 0 for one in measured)
    assert all(one.prose_seconds is not None and one.prose_seconds > 0 for one in measured)


@pytest.mark.slow
def test_a_pattern_that_backtracks_is_named_and_given_up() -> None:
    described = orjson.loads(embedded().tokenizer_json)
    split = {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Isolated", "invert": False}
    described["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, described["pre_tokenizer"]]}
    template = {"tokenizer_config.json": ChatTemplate("{{ 1 }}", "tokenizer_config.json")}
    files = replace(embedded(), tokenizer_json=orjson.dumps(described).decode(), templates=template)
    found = selftest(files, "tgi", (1_000,))
    assert not found.passed
    assert [one.kind for one in found.suspicions if one.level == "warning"] == ["backtracking", "slow"]
    assert [one.kind for one in found.suspicions if one.level == "note"] == ["whole"]


def test_a_tokenizer_that_is_none_cannot_be_tested() -> None:
    with pytest.raises(TokenizerError, match=r"tokenizer\.json cannot be used"):
        selftest(replace(embedded(), tokenizer_json="{}"), "tgi")
