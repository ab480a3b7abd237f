"""Age and gaps of a profile that is valid."""

import datetime as dt

import pytest

from llmshed.profile import Profile, parse_profile
from llmshed.profile.comparison import KINDS
from llmshed.profile.soundness import MOST_DAYS, doubts, problems

TODAY = dt.date(2026, 11, 30)


def profile(budget: str = 'basis = "declared"\npreemptions_per_minute = 0', more: str = "") -> Profile:
    head = 'schema = "llmshed.profile/1"\nname = "p"\nversion = "1"\n[budget]\ngross_ceiling_tokens = 1000\n'
    return parse_profile(f"{head}hard_cap_sequences = 8\n{budget}\n{more}", "p.toml")


def dated(day: dt.date) -> Profile:
    return profile(more=f"[fingerprint]\ndate = {day.isoformat()}")


@pytest.mark.parametrize(("days", "told"), [(0, 0), (MOST_DAYS, 0), (MOST_DAYS + 1, 1), (-1, 1)])
def test_a_measurement_may_be_a_quarter_old_and_not_of_tomorrow(days: int, told: int) -> None:
    assert len(list(problems(dated(TODAY - dt.timedelta(days)), TODAY))) == told


def test_the_age_that_is_accepted_can_be_given() -> None:
    (told,) = problems(dated(TODAY - dt.timedelta(8)), TODAY, 7)
    assert told == "fingerprint.date: measured 8 days ago; at most 7 are accepted"


def test_a_hard_cap_without_its_preemption_budget_is_refused() -> None:
    (told,) = problems(profile('basis = "declared"'), TODAY)
    assert told.startswith("budget.preemptions_per_minute: is missing beside a `hard_cap_sequences` of 8")


def test_a_measurement_without_a_date_is_refused_and_a_declaration_without_one_is_doubtful() -> None:
    measured = profile('basis = "calibrated"\npreemptions_per_minute = 0')
    assert [told.partition(":")[0] for told in problems(measured, TODAY)] == ["fingerprint.date"]
    assert not list(problems(profile(), TODAY))
    assert next(doubts(profile())).startswith("fingerprint.date: is not stated")


def test_what_is_left_open_is_told() -> None:
    told = [doubt.partition(":")[0] for doubt in doubts(profile())]
    assert told == ["fingerprint.date", "fingerprint", "decode.curve", "fingerprint.behaviour"]
    lent = profile('basis = "declared"\novercommit_ratio = 1.2\novercommit_output_ratio = 0.3')
    assert "budget.overcommit_ratio: 1.2 is not lent" in list(doubts(lent))


def test_a_complete_fingerprint_leaves_nothing_open() -> None:
    facts = {name: '"x"' for name in KINDS if "." not in name} | {"gpu_count": "1"}
    digests = dict.fromkeys(("tokenizer_sha256", "template_sha256"), f'"{"a" * 64}"')
    flat = "\n".join(f"{name} = {value}" for name, value in (facts | digests).items())
    limits = "\n".join(f"{name.removeprefix('limits.')} = 8" for name in KINDS if name.startswith("limits."))
    more = (
        "[decode]\nseconds_per_token = 0.1\ncurve = [{ sequences = 1, seconds_per_token = 0.1 }]\n"
        f"[fingerprint]\ndate = 2026-11-30\n{flat}\n[fingerprint.limits]\n{limits}\n"
        "[fingerprint.behaviour]\nfixed_prompt_tokens = 8\nfixed_prompt_prefill_seconds = 1"
    )
    assert not list(doubts(profile(more=more)))
