"""An idle replica beside the one that was measured."""

import pytest

from llmshed.calibration.behaving import moved
from llmshed.calibration.results import Idle
from llmshed.profile.comparison import Match
from llmshed.profile.fingerprint import Behaviour

MEASURED = Behaviour(fixed_prompt_tokens=1024, fixed_prompt_prefill_seconds=0.1, decode_step_seconds=0.02)


def idle(prompt_seconds: float = 0.1, step_seconds: float = 0.02, tokens: int = 1024) -> Idle:
    return Idle(tokens, prompt_seconds, step_seconds, 0.05, 0.06)


@pytest.mark.parametrize(
    ("seen", "matches"),
    [
        (idle(), (Match.MATCH, Match.MATCH)),
        (idle(0.119, 0.0161), (Match.MATCH, Match.MATCH)),
        (idle(0.121), (Match.MISMATCH, Match.MATCH)),
        (idle(0.1, 0.0159), (Match.MATCH, Match.MISMATCH)),
        (idle(0.5, tokens=512), (Match.UNVERIFIED, Match.MATCH)),
        (None, (Match.UNVERIFIED, Match.UNVERIFIED)),
    ],
)
def test_a_fifth_off_is_another_replica(seen: Idle | None, matches: tuple[Match, Match]) -> None:
    assert tuple(one.match for one in moved(MEASURED, seen)) == matches


def test_what_the_profile_does_not_record_is_unverified() -> None:
    prefill, decode = moved(Behaviour(), idle())
    assert (prefill.match, decode.match) == (Match.UNVERIFIED, Match.UNVERIFIED)
    assert str(decode) == "decode_pace: unknown in the profile, 20 ms now"
