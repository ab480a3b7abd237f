"""Steps and first tokens against a replica whose step time is known: w + a n + b K, and w + a n + c L for a prompt."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.profile import Profile, parse_profile
from llmshed.profile.expected import ExpectedPrompts, ExpectedSteps

W, A, B, C = 0.020, 0.0002, 2e-7, 0.0001
CEILING, CEILING_SEQUENCES, FIXED = 50_000, 64, 1000

PROFILE = f"""
schema = "llmshed.profile/1"
name = "p"
version = "1"
[budget]
gross_ceiling_tokens = {CEILING}
hard_cap_sequences = 128
basis = "declared"
[decode]
seconds_per_token = {W + A * CEILING_SEQUENCES + B * CEILING}
curve = [{", ".join(f"{{sequences = {n}, seconds_per_token = {W + A * n}}}" for n in (1, 8, 64))}]
"""
BEHAVIOUR = f"""
[fingerprint.behaviour]
decode_step_seconds = {W + A}
fixed_prompt_tokens = {FIXED}
fixed_prompt_prefill_seconds = {W + A + C * FIXED}
"""


def profile(text: str = PROFILE + BEHAVIOUR) -> Profile:
    return parse_profile(text, "p.toml")


def steps() -> ExpectedSteps:
    found = ExpectedSteps.of(profile())
    assert found is not None
    return found


def prompts() -> ExpectedPrompts:
    found = ExpectedPrompts.of(profile())
    assert found is not None
    return found


@pytest.mark.parametrize("sequences", [1, 2, 5, 8, 40, 64])
def test_the_curve_is_read_on_a_line_between_its_points(sequences: int) -> None:
    assert steps().least_seconds(sequences) == pytest.approx(W + A * sequences)


def test_beyond_the_curve_its_ends_hold() -> None:
    assert steps().least_seconds(0) == pytest.approx(W + A)
    assert steps().least_seconds(500) == pytest.approx(W + A * 64)


@settings(max_examples=40)
@given(st.integers(1, CEILING_SEQUENCES), st.integers(0, CEILING))
def test_a_step_of_the_replica_as_it_was_is_never_off(sequences: int, kv_tokens: int) -> None:
    true_seconds = W + A * sequences + B * kv_tokens
    assert steps().ratio(true_seconds, sequences, kv_tokens) == pytest.approx(1.0)


@settings(max_examples=40)
@given(st.integers(1, CEILING_SEQUENCES), st.integers(0, CEILING))
def test_a_step_that_nothing_explains_is_off_by_what_it_exceeds(sequences: int, kv_tokens: int) -> None:
    expected = steps()
    assert expected.ratio(2 * expected.greatest_seconds(sequences, kv_tokens), sequences, kv_tokens) == pytest.approx(2)
    assert expected.ratio(expected.least_seconds(sequences) / 2, sequences, kv_tokens) == pytest.approx(0.5)


@settings(max_examples=40)
@given(st.integers(650, 8000))
def test_a_lone_prompt_takes_one_step_and_its_own_time(tokens: int) -> None:
    assert prompts().ratio(W + A + C * tokens, tokens, 0) == pytest.approx(1.0)
    assert prompts().ratio(2 * (W + A + C * tokens), tokens, 0) == pytest.approx(2.0)


@settings(max_examples=40)
@given(st.integers(1000, 8000), st.integers(1, 32), st.floats(0, 1))
def test_beside_others_it_waits_for_a_part_of_a_step(tokens: int, sequences: int, part: float) -> None:
    step = W + A * sequences
    ratio = prompts().ratio((1 + part) * step + C * tokens, tokens, sequences)
    assert ratio is not None
    assert 1.0 <= ratio < 1.15


def test_a_short_prompt_shows_nothing_and_a_cached_one_is_not_too_fast() -> None:
    assert prompts().ratio(1.0, 500, 0) is None
    assert prompts().ratio(0.001, 4000, 0) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        PROFILE,
        PROFILE + BEHAVIOUR.replace("fixed_prompt_tokens", "# "),
        PROFILE + BEHAVIOUR.replace("fixed_prompt_prefill_seconds", "# "),
        PROFILE.partition("[decode]")[0] + BEHAVIOUR,
        PROFILE + BEHAVIOUR.replace(f"fixed_prompt_prefill_seconds = {W + A + C * FIXED}",
                                    "fixed_prompt_prefill_seconds = 0.001"),
    ],
    ids=["no behaviour", "no length", "no time", "no steps", "faster than a step"],
)  # fmt: skip
def test_of_a_profile_that_does_not_tell_no_prompt_is_expected(text: str) -> None:
    assert ExpectedPrompts.of(profile(text)) is None


def test_without_a_curve_no_step_is_expected() -> None:
    assert ExpectedSteps.of(profile(PROFILE.partition("[decode]")[0])) is None
    assert ExpectedSteps.of(profile(PROFILE.partition("curve")[0])) is None
