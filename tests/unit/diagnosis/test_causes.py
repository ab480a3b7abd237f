"""Each cause is told from the others by what it alone shows; every incident is stated in the signals of operators."""

from collections.abc import Mapping

import pytest

from fakes.incident import SUFFERING, staged
from llmshed.diagnosis.causes import RULES, Cause, not_looked_at, suspicions

TOKENS = {"refused_for_tokens": 0.9, "lent": 0.97}
INCIDENTS: dict[str, tuple[Cause, Mapping[str, float]]] = {
    "one of three replicas is gone": (Cause.REPLICA_LOSS, {**TOKENS, "replicas_up": 0.67}),
    "the engine counts another template": (Cause.DRIFTED_PROFILE, {**TOKENS, "miscounted": 4.0}),
    "another GPU under the old profile": (Cause.DRIFTED_PROFILE, {**TOKENS, "profile_mismatch": 1.0, "tpot_p95": 0.06}),
    "documents wait to be counted": (
        Cause.TOKENIZER,
        {"counting_p95": 1.2, "refused_for_counting": 0.8, "lent": 0.2, "generated": 300.0},
    ),
    "the network drops connections": (Cause.UPSTREAM, {"upstream_errors": 4.0, "lent": 0.4, "oldest_age": 0.02}),
    "the engine's scheduler stands still": (
        Cause.STALL,
        {**TOKENS, "stalls": 2.0, "budget_factor": 0.3, "generated": 0.0},
    ),
    "sequences are thrown out": (
        Cause.KV_EXHAUSTION,
        {**TOKENS, "preemptions": 0.8, "kv_used": 0.99, "tpot_p95": 0.09, "interactive_arrivals": 24.0},
    ),
    "a client hammers": (Cause.RETRY_ECHO, {"amplification": 4.0, "refused_for_tokens": 0.3, "lent": 0.9}),
    "a ceiling of half of what it carries": (
        Cause.MISSET_BUDGET,
        {**TOKENS, "kv_used": 0.3, "engine_waiting": 0.0, "tpot_p95": 0.025},
    ),
    "a threshold that sends chats to bulk": (Cause.MISSET_LANE, {"interactive_share": 0.5, "bulk_refused": 3.0}),
    "long documents come": (
        Cause.LONG_PREFILLS,
        {
            "refused_for_prefill": 0.8,
            "interactive_input_p95": 3900.0,
            "interactive_input": 40_000.0,
            "ttft_p95": 3.0,
            "queued_prefill": 90_000.0,
            "lent": 0.7,
        },
    ),
    "long documents come where prefill is not metered": (
        Cause.LONG_PREFILLS,
        {**TOKENS, "interactive_arrivals": 40.0, "interactive_input_p95": 3900.0, "interactive_input": 130_000.0,
         "ttft_p95": 3.2, "tpot_p95": 0.19},
    ),
    "more of the same": (
        Cause.DECODE_SATURATION,
        {**TOKENS, "interactive_arrivals": 50.0, "interactive_input": 30_000.0, "tpot_p95": 0.05, "gpu": 0.99},
    ),
    "longer answers": (
        Cause.DECODE_SATURATION,
        {**TOKENS, "interactive_ceiling_p95": 1024.0, "tpot_p95": 0.045, "interactive_arrivals": 26.0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("incident", INCIDENTS)
def test_the_cause_is_the_heaviest(incident: str, seed: int) -> None:
    cause, changed = INCIDENTS[incident]
    found = suspicions(staged({**SUFFERING, **changed}, seed=seed))
    assert found, "some cause is suspected"
    assert found[0].cause is cause, [(one.cause, one.weight) for one in found]


def test_every_cause_of_the_table_is_staged() -> None:
    assert {cause for cause, _ in INCIDENTS.values()} == {rule.cause for rule in RULES}


def test_gpu_utilisation_alone_suspects_nobody() -> None:
    assert suspicions(staged({"gpu": 1.0})) == ()


def test_a_queue_inside_the_engine_beside_an_idle_gpu_is_neither_compute_nor_cache() -> None:
    """As of an engine that was overfed: 294 wait, the cache is under 47 %, and the GPU does less than before."""
    facts = staged({"engine_waiting": 294.0, "kv_used": 0.46, "gpu": 0.3, **SUFFERING})
    assert not {one.cause for one in suspicions(facts)} & {Cause.KV_EXHAUSTION, Cause.DECODE_SATURATION}


def test_what_could_not_be_looked_at_is_said() -> None:
    absent = ("replicas_up", "stalls", "preemptions", "kv_signals")
    assert {Cause.REPLICA_LOSS, Cause.STALL, Cause.KV_EXHAUSTION} <= set(not_looked_at(staged({}, absent=absent)))
    assert not_looked_at(staged({"refused_for_tokens": 0.0, "refused_for_seats": 0.0})) == ()


def test_evidence_is_told_for_and_against_and_what_was_not_there() -> None:
    changed = {**SUFFERING, **TOKENS, "replicas_up": 0.5, "lent": 0.1}
    (loss,) = (one for one in suspicions(staged(changed, absent=("seated",))) if one.cause is Cause.REPLICA_LOSS)
    assert "replicas that take work: " in loss.held[0]
    assert any("safe budgets that are lent: 10 %" in sentence for sentence in loss.against)
    assert loss.weight == pytest.approx(2 / 3)
