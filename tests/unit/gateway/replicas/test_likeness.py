"""What a pool makes of a replica that is not what its profile was measured on."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.profiles import PROFILE, REVISION, written
from fakes.signals_seen import SignalsSeen
from fakes.tgi import WordCounter
from llmshed.admission.policy import ModelLimits, ReplicaBudget, ReplicaSpec
from llmshed.config.settings import Config
from llmshed.engines.base import EngineInfo
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.gateway.replicas.likeness import Likeness
from llmshed.gateway.replicas.pool_tools import PoolPlan
from llmshed.gateway.replicas.selfcheck import Mismatch, SelfCheck
from llmshed.gateway.replicas.serving import Serving
from llmshed.profile.comparison import Kind, Match
from llmshed.tokenizing.base import Digests

SAME = EngineInfo("llmshed/simulated", "3.3.5", 128, 8191, 8192, model_revision=REVISION, dtype="torch.float16")
AGREED = SelfCheck(21, (), ())
DIFFERS = SelfCheck(4, (Mismatch("chat_tools", 100, 120),), ())
SLOW, WELL = {Kind.DECODE_PACE: Match.MISMATCH}, {Kind.DECODE_PACE: Match.MATCH}
UNSEEN = {Kind.DECODE_PACE: Match.UNVERIFIED}
RATIO = {Kind.DECODE_PACE: 1.5}


class Seen(SignalsSeen):
    def __init__(self) -> None:
        super().__init__()
        self.counts_wrong = 0

    def count_mismatched(self, pool: str) -> None:
        assert pool == "main"
        self.counts_wrong += 1


class Compared:
    """The likeness of a replica `r1` whose profile is written in `place`."""

    def __init__(self, place: Path, text: str = PROFILE, *, mode: str = "enforce", **pool: Any) -> None:
        self.seen = Seen()
        self.place = place
        self.mode = mode
        self.pool = {"declared": {"gpu": "NVIDIA L4"}} | pool
        written(place, text)
        self.likeness = Likeness("r1", self.plan(), self.seen, simulated=False)

    def plan(self, **changed: Any) -> PoolPlan:
        pool = {"replicas": [{"name": "r1", "url": "http://127.0.0.1:1"}], "profile": str(self.place / "measured.toml")}
        given = {"admission": {"mode": self.mode}, "pools": [pool | self.pool | changed]}
        config = Config.model_validate(given, strict=False)
        return PoolPlan.of(config.pools[0], config)

    def met(self, info: EngineInfo = SAME, self_check: SelfCheck = AGREED, digests: Digests | None = None) -> None:
        counter = WordCounter()
        counter.digests = digests or Digests()
        spec = ReplicaSpec("r1", "main", ReplicaBudget(40_000, 0.0, 64), ModelLimits(8191, 8192))
        self.likeness.met(Serving("http://127.0.0.1:1", info, TgiEngine(), counter, spec, self_check))

    def match(self, kind: Kind) -> Match:
        return self.seen.matches["r1", kind]


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records]


def test_the_replica_of_the_profile_keeps_all_of_its_budget(tmp_path: Path) -> None:
    compared = Compared(tmp_path)
    compared.met()
    assert compared.likeness.kept_ratio == 1.0
    assert compared.likeness.refusal is None
    assert compared.seen.kept == {"r1": 1.0}
    assert {kind: compared.match(kind) for kind in Kind} == {
        Kind.MODEL: Match.MATCH,
        Kind.ENGINE: Match.MATCH,
        Kind.PRECISION: Match.UNVERIFIED,  # the profile does not record the quantisation
        Kind.HARDWARE: Match.UNVERIFIED,
        Kind.LIMITS: Match.UNVERIFIED,
        Kind.TOKENIZER: Match.UNVERIFIED,
        Kind.PREFILL_PACE: Match.UNVERIFIED,
        Kind.DECODE_PACE: Match.UNVERIFIED,
    }


SWAPS = {
    "engine version": (replace(SAME, version="3.3.6"), Kind.ENGINE, "engine_version: 3.3.5 in the profile, 3.3.6 now"),
    "revision": (replace(SAME, model_revision="0" * 40), Kind.MODEL, f"model_revision: {REVISION} in the profile"),
    "model": (replace(SAME, model_id="org/other"), Kind.MODEL, "model_id: llmshed/simulated in the profile"),
    "dtype": (replace(SAME, dtype="torch.bfloat16"), Kind.PRECISION, "dtype: float16 in the profile"),
}


@pytest.mark.parametrize(("info", "kind", "told"), SWAPS.values(), ids=SWAPS)
def test_another_one_is_derated_warned_of_or_refused_as_the_pool_says(
    tmp_path: Path, info: EngineInfo, kind: Kind, told: str
) -> None:
    for on_mismatch, kept in (("derate", 0.7), ("warn", 1.0), ("refuse", 0.7)):
        compared = Compared(tmp_path, on_mismatch=on_mismatch, derate_ratio=0.3)
        compared.met()
        compared.met(info)
        assert compared.match(kind) is Match.MISMATCH
        assert compared.likeness.kept_ratio == pytest.approx(kept)
        refusal = compared.likeness.refusal
        assert (refusal is not None) == (on_mismatch == "refuse")
        assert refusal is None or told in refusal
        compared.met()
        assert (compared.likeness.kept_ratio, compared.likeness.refusal) == (1.0, None)


def test_a_gpu_that_is_declared_otherwise_is_a_mismatch(tmp_path: Path) -> None:
    compared = Compared(tmp_path, declared={"gpu": "NVIDIA A10G"})
    compared.met()
    assert compared.match(Kind.HARDWARE) is Match.MISMATCH
    assert compared.likeness.kept_ratio == 0.5


def test_in_observe_mode_nothing_is_kept_out(tmp_path: Path) -> None:
    compared = Compared(tmp_path, on_mismatch="refuse", mode="observe")
    compared.met(SWAPS["dtype"][0])
    assert (compared.likeness.kept_ratio, compared.likeness.refusal) == (0.5, None)


def test_changes_are_logged_and_nothing_else_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    compared = Compared(tmp_path)
    for _ in range(3):
        compared.met()
    assert messages(caplog) == ["profile_unverified"]
    told = vars(caplog.records[0])
    assert (told["replica"], told["pool"], told["profile"]) == ("r1", "main", "measured@7")
    assert "quantization" in told["not_recorded"]
    assert told["not_told"] == []
    for _ in range(3):
        compared.met(SWAPS["dtype"][0])
        compared.likeness.paced(SLOW, RATIO)
        compared.likeness.paced(SLOW, {Kind.DECODE_PACE: 1.6})
    assert messages(caplog)[1:] == ["profile_mismatch"] * 2
    assert vars(caplog.records[2])["fields"] == [
        "dtype: float16 in the profile, torch.bfloat16 now",
        "decode_pace: 1.50 times the seconds that the profile leads to expect",
    ]
    compared.met()
    assert messages(caplog)[3:] == ["profile_matches_again"]


def test_what_is_declared_against_what_is_told_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    compared = Compared(tmp_path, declared={"gpu": "NVIDIA L4", "dtype": "bfloat16"})
    compared.met()
    assert compared.match(Kind.PRECISION) is not Match.MISMATCH
    (told,) = [record for record in caplog.records if record.message == "declaration_contradicted"]
    assert vars(told)["detail"] == "dtype is declared as bfloat16, and the replica tells torch.float16"


def test_counts_that_have_come_to_differ_are_a_mismatch_until_they_agree_again(tmp_path: Path) -> None:
    compared = Compared(tmp_path, on_mismatch="refuse")
    compared.met()
    compared.likeness.recounted(DIFFERS)
    assert compared.match(Kind.TOKENIZER) is Match.MISMATCH
    assert compared.seen.counts_wrong == 1
    assert compared.likeness.refusal == (
        "it is not what its profile was measured on:"
        " token counts: chat_tools: 100 tokens here, 120 tokens by the engine"
    )
    compared.likeness.recounted(SelfCheck(0, (), ("the engine is busy",)))
    assert compared.match(Kind.TOKENIZER) is Match.MISMATCH
    compared.likeness.recounted(AGREED)
    assert compared.match(Kind.TOKENIZER) is Match.UNVERIFIED
    assert compared.likeness.refusal is None


def test_the_tokenizer_is_known_where_both_count_alike(tmp_path: Path) -> None:
    digests = Digests("a" * 64, "b" * 64)
    compared = Compared(tmp_path, PROFILE + f'tokenizer_sha256 = "{"a" * 64}"\ntemplate_sha256 = "{"b" * 64}"\n')
    compared.met(digests=digests)
    assert compared.match(Kind.TOKENIZER) is Match.MATCH
    compared.met(digests=Digests("a" * 64, "c" * 64))
    assert compared.match(Kind.TOKENIZER) is Match.MISMATCH
    compared.met(self_check=DIFFERS, digests=digests)
    assert compared.match(Kind.TOKENIZER) is Match.UNVERIFIED
    compared.met(self_check=SelfCheck(0, (), ("no such route",)), digests=digests)
    assert compared.match(Kind.TOKENIZER) is Match.UNVERIFIED


def test_a_slow_replica_is_held_to_be_slow_until_it_is_seen_otherwise_or_is_another_one(tmp_path: Path) -> None:
    compared = Compared(tmp_path)
    compared.met()

    def slow_then(*what: Any) -> float:
        compared.likeness.paced(SLOW, RATIO)
        assert compared.likeness.kept_ratio == 0.5
        for step in what:
            step()
        return compared.likeness.kept_ratio

    assert slow_then(lambda: compared.likeness.paced(UNSEEN, {})) == 0.5
    assert slow_then(compared.met) == 0.5
    assert slow_then(lambda: compared.likeness.follow(compared.plan(lanes=["bulk"])), compared.met) == 0.5
    assert slow_then(lambda: compared.likeness.paced(WELL, {})) == 1.0
    assert slow_then(compared.likeness.lost, compared.met) == 1.0
    assert slow_then(lambda: compared.met(replace(SAME, max_total_tokens=4096))) == 1.0
    assert slow_then(lambda: compared.likeness.follow(compared.plan(derate_ratio=0.2)), compared.met) == 1.0


def test_it_is_said_once_that_the_last_one_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    compared = Compared(tmp_path, on_mismatch="refuse")
    compared.met(SWAPS["dtype"][0])
    for _ in range(3):
        compared.likeness.kept_as_last()
    (told,) = [record for record in caplog.records if record.message == "replica_kept_as_last"]
    assert "dtype" in vars(told)["detail"]
    assert vars(told)["kept_ratio"] == 0.5


def test_without_a_profile_nothing_is_compared_and_what_was_is_forgotten(tmp_path: Path) -> None:
    compared = Compared(tmp_path)
    compared.met(SWAPS["dtype"][0])
    compared.likeness.follow(compared.plan(profile=None))
    compared.met()
    compared.likeness.paced(SLOW, RATIO)
    assert (compared.likeness.kept_ratio, compared.likeness.refusal) == (1.0, None)
    assert compared.seen.matches == {}
    compared.likeness.follow(compared.plan())
    compared.met()
    assert compared.match(Kind.ENGINE) is Match.MATCH


def test_a_simulated_replica_is_what_its_profile_says_as_far_as_not_told(tmp_path: Path) -> None:
    compared = Compared(tmp_path)
    own = Likeness("r1", compared.plan(), compared.seen, simulated=True)
    compared.likeness = own
    compared.met(replace(SAME, model_revision=None))
    assert compared.match(Kind.MODEL) is Match.MATCH
    compared.met(replace(SAME, version="3.0.0"))
    assert own.kept_ratio == 0.5
    own.forgotten()
    assert compared.seen.matches == {}
