from dataclasses import replace

import pytest

from llmshed.calibration.observations import Knee
from llmshed.calibration.plan import Objective, Plan, Shape
from llmshed.calibration.proposal import Facts, propose
from llmshed.calibration.results import Idle, Phase, Result, SweepResult
from llmshed.profile.sections import Lanes

PLAN = Plan((Shape(300, 100, "interactive"),), {"interactive": Objective(2.0, 0.1)})
FACTS = Facts(Lanes(), step_budget_tokens=4096)


def swept(phase: Phase, knee: Knee | None, preemptions: float | None = None) -> SweepResult:
    paces = ((8.0, 0.03), (64.0, 0.05)) if phase is Phase.CAP else ()
    return SweepResult(phase, knee, "TTFT", (), (), paces, 0.06, 1.0, preemptions, 100, 60.0)


WHOLE = Result(
    Idle(1024, 0.3, 0.02, 0.1, 0.4),
    (
        swept(Phase.KV, Knee(96_000.7, 97_000.0, 98_000.0)),
        swept(Phase.PREFILL, Knee(5000.0, 5100.0, 5200.0)),
        swept(Phase.CAP, Knee(64.9, 66.0, 70.0), 2.0),
        swept(Phase.CONFIRM, Knee(4000.0, 4000.0, 5000.0), 1.5),
    ),
    tuple(range(1, 101)),
    1000,
    0,
    0,
    None,
    "",
)


def without(result: Result, phase: Phase) -> Result:
    return replace(result, sweeps=tuple(sweep for sweep in result.sweeps if sweep.phase is not phase))


def test_a_whole_run_gives_all_sections() -> None:
    proposal = propose(WHOLE, PLAN, FACTS)
    assert proposal is not None
    budget = proposal.budget
    assert (budget.gross_ceiling_tokens, budget.gross_ceiling_high_tokens) == (96_000, 98_000)
    assert (budget.hard_cap_sequences, budget.preemptions_per_minute, budget.basis) == (64, 1.5, "calibrated")
    assert budget.guard_band_ratio == 0.10
    assert proposal.prefill is not None
    assert proposal.prefill.safe_tokens_per_second == 4000
    assert proposal.prefill.inflight_tokens == 2800  # 0.7 s at the rate; two steps of the engine take more
    assert proposal.decode is not None
    assert [(point.sequences, point.seconds_per_token) for point in proposal.decode.curve] == [
        (1, 0.02), (8, 0.03), (64, 0.05)
    ]  # fmt: skip
    assert proposal.output is not None
    assert (proposal.output.p50, proposal.output.p90, proposal.output.p99) == (51, 91, 100)
    assert proposal.lanes.interactive.default_output_tokens == 128
    assert proposal.behaviour.fixed_prompt_tokens == 1024
    assert proposal.queue_share_ratio == pytest.approx(0.3)
    assert proposal.remarks == ()


def test_small_steps_of_the_engine_bound_what_is_in_flight() -> None:
    proposal = propose(WHOLE, PLAN, Facts(Lanes(), step_budget_tokens=1024))
    assert proposal is not None
    assert proposal.prefill is not None
    assert proposal.prefill.inflight_tokens == 2048


@pytest.mark.parametrize("phase", [Phase.KV, Phase.CAP])
def test_without_a_ceiling_or_a_hard_cap_nothing_is_proposed(phase: Phase) -> None:
    assert propose(without(WHOLE, phase), PLAN, FACTS) is None


def test_answers_that_end_early_and_break_the_pace_are_told() -> None:
    early = replace(swept(Phase.KV, Knee(90_000.0, 91_000.0, 92_000.0)), output_ratio=0.41, broke="TPOT")
    proposal = propose(replace(WHOLE, sweeps=(early, *WHOLE.sweeps[1:])), PLAN, FACTS)
    assert proposal is not None
    (remark,) = proposal.remarks
    assert remark.startswith("answers ended at 41% of their ceilings, and prompts between them broke the pace")
    by_first_tokens = replace(early, broke="TTFT")
    proposal = propose(replace(WHOLE, sweeps=(by_first_tokens, *WHOLE.sweeps[1:])), PLAN, FACTS)
    assert proposal is not None
    assert proposal.remarks == ()


def test_a_wide_interval_widens_the_guard_band() -> None:
    result = replace(WHOLE, sweeps=(swept(Phase.KV, Knee(90_000.0, 95_000.0, 99_000.0)), *WHOLE.sweeps[1:]))
    proposal = propose(result, PLAN, FACTS)
    assert proposal is not None
    assert proposal.budget.guard_band_ratio == pytest.approx(0.10 + 0.10)


def test_without_a_confirmed_rate_the_sweeps_own_is_proposed() -> None:
    proposal = propose(without(WHOLE, Phase.CONFIRM), PLAN, FACTS)
    assert proposal is not None
    assert proposal.prefill is not None
    assert proposal.prefill.safe_tokens_per_second == 5000


def test_what_was_not_found_is_remarked_on() -> None:
    proposal = propose(without(without(WHOLE, Phase.CONFIRM), Phase.PREFILL), PLAN, FACTS)
    assert proposal is not None
    assert proposal.prefill is None
    assert proposal.budget.preemptions_per_minute == 2.0
    assert proposal.remarks == ("the figures together were not confirmed on the mix",)
