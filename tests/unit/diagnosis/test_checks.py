"""One look at a time: whether it holds, in words with the figures, and nothing where nothing is known."""

import pytest

from fakes.incident import SUFFERING, staged
from llmshed.diagnosis.checks import (
    Check,
    at_least,
    below,
    both,
    departed_first,
    did_not_grow,
    either,
    fell,
    grew,
    happened,
    moved,
    shown,
)

FACTS = staged(
    {**SUFFERING, "lent": 0.9, "kv_used": 0.2, "tpot_p95": 0.09, "replicas_up": 0.5, "stalls": 3.0},
    absent=("gpu", "seated"),
    begins={"replicas_up": 5310.0},
)


@pytest.mark.parametrize(
    ("check", "holds", "words"),
    [
        (at_least("lent", 0.85), True, "safe budgets that are lent: 9"),
        (at_least("lent", 0.99), False, "at least 99 % tells"),
        (below("kv_used", 0.3), True, "below 30 % tells"),
        (grew("tpot_p95", 2.5), True, "3 x the 30 ms before"),
        (grew("tpot_p95", 3.5), False, "before"),
        (did_not_grow("interactive_arrivals", 1.2), True, "before"),
        (fell("replicas_up", 0.01), True, "50 % at least, 100 % before"),
        (fell("budget_factor", 0.05), False, "100 %"),
        (happened("stalls", 1.0), True, "3 at most"),
        (moved("lent", 0.3), True, "before"),
        (moved("interactive_share", 0.1), False, "before"),
        (departed_first("replicas_up", "missed"), True, "departed 90 s before"),
        (departed_first("missed", "replicas_up"), False, "departed 90 s after"),
        (departed_first("missed", "bulk_arrivals"), True, "did not"),
        (both(at_least("lent", 0.85), below("kv_used", 0.3)), True, "; "),
        (both(at_least("lent", 0.85), below("kv_used", 0.1)), False, "; "),
        (either(at_least("seated", 0.5), at_least("lent", 0.85)), True, "lent"),
        (either(below("kv_used", 0.1), below("lent", 0.1)), False, "KV cache"),
    ],
)
def test_what_is_seen(check: Check, holds: bool, words: str) -> None:  # noqa: FBT001 - the expected value
    seen = check(FACTS)
    assert seen is not None
    assert seen.holds is holds, seen.sentence
    assert words in seen.sentence


@pytest.mark.parametrize(
    "check",
    [
        at_least("seated", 0.1), below("seated", 0.1), grew("seated", 2), fell("seated", 0.1), happened("seated", 1),
        moved("seated", 0.1), departed_first("seated", "missed"), both(at_least("lent", 0.1), at_least("seated", 0.1)),
        either(at_least("seated", 0.1), at_least("gpu", 0.1)), grew("interactive_refused", 2),
    ],
)  # fmt: skip
def test_what_is_not_known_is_none(check: Check) -> None:
    """The last one was nothing before, so that no growth can be told."""
    facts = staged(SUFFERING, absent=("gpu", "seated"))
    assert check(facts) is None


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("lent", 0.934, "93 %"),
        ("ttft_p95", 1.234, "1.23 s"),
        ("tpot_p95", 0.0314, "31 ms"),
        ("queued_prefill", 91_234.5, "91,234 tokens"),
        ("interactive_input", 12_345.6, "12,346 tokens/s"),
        ("interactive_arrivals", 3.14159, "3.1 /s"),
        ("interactive_arrivals", 1234.5, "1,234 /s"),
        ("engine_waiting", 294.0, "294"),
    ],
)
def test_values_are_shown_in_their_units(name: str, value: float, text: str) -> None:
    assert shown(name, value) == text
