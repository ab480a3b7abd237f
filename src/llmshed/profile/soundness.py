"""What is wrong or doubtful with a profile that its schema takes: its age, and what it leaves open."""

import datetime as dt
from collections.abc import Iterator

from llmshed.profile.comparison import KINDS, measured_facts
from llmshed.profile.model import Profile

MOST_DAYS = 90
"""Age beyond which a profile is to be measured again: a quarter, in which engines have some three releases."""


def problems(profile: Profile, today: dt.date, most_days: int = MOST_DAYS) -> Iterator[str]:
    """Yield what keeps a profile from being relied on, one sentence each, the field first."""
    measured_on = profile.fingerprint.date
    if measured_on is None and profile.budget.basis == "calibrated":
        yield "fingerprint.date: is missing, so nobody knows how old these measurements are"
    if measured_on is not None:
        days = (today - measured_on).days
        if days < 0:
            yield f"fingerprint.date: {measured_on} is in the future"
        elif days > most_days:
            yield f"fingerprint.date: measured {days} days ago; at most {most_days} are accepted"
    if profile.budget.preemptions_per_minute is None:
        yield (
            "budget.preemptions_per_minute: is missing beside a `hard_cap_sequences` of"
            f" {profile.budget.hard_cap_sequences}: without a preemption budget nobody notices what an engine"
            " recomputes; 0 is accepted for one that never preempts"
        )


def doubts(profile: Profile) -> Iterator[str]:
    """Yield what a profile leaves open, one sentence each, the field first."""
    if profile.fingerprint.date is None and profile.budget.basis == "declared":
        yield "fingerprint.date: is not stated, so its age is not known"
    if profile.budget.overcommit_ratio > 1:
        yield f"budget.overcommit_ratio: {profile.budget.overcommit_ratio:g} is not lent"
    recorded = measured_facts(profile.fingerprint)
    missing = [field for field in KINDS if field not in recorded]
    if missing:
        yield f"fingerprint: does not record {', '.join(missing)}: unverified on every replica"
    behaviour = profile.fingerprint.behaviour
    if profile.decode is None or not profile.decode.curve:
        yield "decode.curve: is missing, so a replica's steps are not watched"
    if behaviour.fixed_prompt_prefill_seconds is None or behaviour.fixed_prompt_tokens is None:
        yield "fingerprint.behaviour: tells no fixed prompt, so a replica's prompts are not watched"
