"""Live requests of a replica whose steps and prompts take as long as its profile says, or not."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from llmshed.profile import Profile, parse_profile
from llmshed.profile.comparison import Kind, Match
from llmshed.profile.pace import GAPS, PaceWatch, Sent

STEP, PROMPT_TOKEN = 0.020, 0.0001

PROFILE = f"""
schema = "llmshed.profile/1"
name = "p"
version = "1"
[budget]
gross_ceiling_tokens = 50_000
hard_cap_sequences = 128
basis = "declared"
[decode]
seconds_per_token = {STEP}
curve = [{{sequences = 1, seconds_per_token = {STEP}}}]
[fingerprint.behaviour]
decode_step_seconds = {STEP}
fixed_prompt_tokens = 1000
fixed_prompt_prefill_seconds = {STEP + 1000 * PROMPT_TOKEN}
"""
PROMPT = Sent(prompt_tokens=1000, sequences=1, ceiling_tokens=100, streamed=True, fresh=True)


def profile(text: str = PROFILE) -> Profile:
    return parse_profile(text, "p.toml")


@dataclass
class Replica:
    """An idle replica that answers one request after the other, `slower` times as slowly as its profile says."""

    slower: float = 1.0
    watch: PaceWatch = field(default_factory=lambda: PaceWatch(profile()))
    now: float = 0.0
    keys: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def send(self, sent: Sent = PROMPT) -> int:
        key = next(self.keys)
        self.watch.sent(key, sent, self.now)
        return key

    def prompt(self, key: int) -> None:
        self.now += self.slower * (STEP + 1000 * PROMPT_TOKEN)
        self.hear(key)

    def step(self, *keys: int) -> None:
        self.now += self.slower * STEP
        for key in keys:
            self.hear(key)

    def hear(self, key: int) -> None:
        if key in self.watch.awaited:  # as the gateway does
            self.watch.heard(key, self.now)

    def minute(self, answers: int = 12) -> None:
        """Answer so many requests in a minute, each with a few samples of its steps."""
        begins = self.now
        for _ in range(answers):
            key = self.send()
            self.prompt(key)
            self.watch.look(self.now)
            for _ in range(GAPS + 2):
                self.step(key)
            self.watch.ended(key)
        self.now = max(self.now, begins + 60.0)
        self.watch.look(self.now)

    def minutes(self, number: int) -> dict[Kind, Match]:
        for _ in range(number):
            self.minute()
        return dict(self.watch.matches)


BOTH = {Kind.PREFILL_PACE, Kind.DECODE_PACE}


def test_a_replica_as_it_was_measured_matches() -> None:
    replica = Replica()
    assert replica.minutes(2) == dict.fromkeys(BOTH, Match.MATCH)
    assert replica.watch.ratios == pytest.approx(dict.fromkeys(BOTH, 1.0))


def test_one_that_became_a_third_slower_is_a_mismatch_after_five_minutes() -> None:
    replica = Replica()
    replica.minutes(2)
    replica.slower = 1.34
    assert replica.minutes(4) == dict.fromkeys(BOTH, Match.MATCH)
    assert replica.minutes(2) == dict.fromkeys(BOTH, Match.MISMATCH)
    assert replica.watch.ratios == pytest.approx(dict.fromkeys(BOTH, 1.34))


def test_one_that_became_faster_differs_in_its_steps() -> None:
    replica = Replica(slower=0.7)
    assert replica.minutes(7) == {Kind.PREFILL_PACE: Match.MATCH, Kind.DECODE_PACE: Match.MISMATCH}


def test_without_traffic_nothing_is_known() -> None:
    replica = Replica()
    for _ in range(20):
        replica.minute(answers=0)
    assert replica.watch.matches == dict.fromkeys(BOTH, Match.UNVERIFIED)
    assert replica.watch.ratios == {}


def test_steps_in_which_a_prompt_was_processed_are_no_sample_of_steps() -> None:
    replica = Replica()
    running = replica.send()
    replica.prompt(running)
    for _ in range(40):
        replica.watch.look(replica.now)
        replica.step(running)
        other = replica.send()
        replica.now += 5.0  # a prompt stands in the way
        replica.hear(running)
        replica.hear(other)
        replica.watch.ended(other)
    replica.now += 60.0
    replica.watch.look(replica.now)
    assert Kind.DECODE_PACE not in replica.watch.ratios


@pytest.mark.parametrize(
    "beside",
    [
        PROMPT,
        Sent(prompt_tokens=1000, sequences=1, ceiling_tokens=100, streamed=False, fresh=True),
    ],
    ids=["streamed", "whole"],
)
def test_a_prompt_beside_another_is_no_sample_of_prompts(beside: Sent) -> None:
    replica = Replica()
    for _ in range(10):
        other, key = replica.send(beside), replica.send()
        replica.now += 9.0
        replica.hear(key)
        replica.hear(other)
        replica.watch.ended(key)
        replica.watch.ended(other)
    replica.now += 60.0
    replica.watch.look(replica.now)
    assert Kind.PREFILL_PACE not in replica.watch.ratios


@pytest.mark.parametrize(
    "sent",
    [
        Sent(prompt_tokens=1000, sequences=1, ceiling_tokens=100, streamed=True, fresh=False),
        Sent(prompt_tokens=2000, sequences=2, ceiling_tokens=100, streamed=True, fresh=True),
        Sent(prompt_tokens=100, sequences=1, ceiling_tokens=100, streamed=True, fresh=True),
    ],
    ids=["conversation", "two sequences", "short"],
)
def test_what_shows_no_prompt_is_no_sample(sent: Sent) -> None:
    replica = Replica()
    for _ in range(10):
        key = replica.send(sent)
        replica.now += 9.0
        replica.hear(key)
        replica.watch.ended(key)
    replica.now += 60.0
    replica.watch.look(replica.now)
    assert Kind.PREFILL_PACE not in replica.watch.ratios


def test_behind_the_prompt_of_a_client_that_left_nothing_is_alone() -> None:
    replica = Replica()
    for _ in range(10):
        replica.watch.ended(replica.send())
        key = replica.send()
        replica.now += 9.0
        replica.hear(key)
        replica.watch.ended(key)
    replica.now += 60.0
    replica.watch.look(replica.now)
    assert Kind.PREFILL_PACE not in replica.watch.ratios


def test_streams_take_turns_at_being_looked_at() -> None:
    replica = Replica()
    first, second = replica.send(), replica.send()
    replica.prompt(first)
    replica.prompt(second)
    seen = []
    for _ in range(4):
        replica.watch.look(replica.now)
        seen += list(replica.watch.awaited)
        for _ in range(GAPS + 1):
            replica.step(first, second)
        assert not replica.watch.awaited
    assert seen == [first, second, first, second]


def test_nothing_is_kept_of_what_ended() -> None:
    replica = Replica()
    replica.minutes(1)
    replica.watch.ended(10**9)
    watch = replica.watch
    assert (watch.awaited, watch._running, watch._waiting, watch._begun_sequences) == (set(), {}, set(), 0)


def test_a_profile_without_steps_is_never_judged() -> None:
    replica = Replica(slower=9.0, watch=PaceWatch(profile(PROFILE.partition("[decode]")[0])))
    assert replica.minutes(8) == dict.fromkeys(BOTH, Match.UNVERIFIED)
