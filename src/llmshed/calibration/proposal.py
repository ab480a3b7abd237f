"""From what was found to the sections of a profile."""

from dataclasses import dataclass

from llmshed.calibration.phases import WAITING_RATIO
from llmshed.calibration.plan import Plan
from llmshed.calibration.results import Idle, Phase, Result
from llmshed.profile.fingerprint import Behaviour
from llmshed.profile.sections import Budget, CurvePoint, Decode, Lanes, Latency, Output, Prefill

RULE = "isotonic-knee-95"
"""Name of the rule that found the ceiling: lower 95 % confidence bound of the knee of an isotonic fit."""
GUARD_BAND_RATIO = 0.10
WIDE_INTERVAL_RATIO = 0.05
"""An interval wider than this part of the ceiling is added to the guard band: so little is known of the knee."""
SHORT_OUTPUT_RATIO = 0.8
"""Answers that end sooner than at this part of their ceilings make many more prompts than a full cache would see."""
DEFAULT_CEILING_SHARE = 0.95
"""Answers that a lane's default ceiling does not cut."""
CEILING_STEP_TOKENS = 64
"""Default ceilings are whole multiples of this."""
ENGINE_STEPS = 2
"""Prompts dispatched without a first token, in steps of the engine: one that runs and one that is ready."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the replica and the lanes beside the measurements.

    Args:
        lanes: thresholds and objectives that were in force; default ceilings are proposed anew.
        step_budget_tokens: prompt tokens that one step of the engine takes; None when it does not tell.
    """

    lanes: Lanes
    step_budget_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """Sections of a profile, and what to tell beside them.

    Args:
        budget: gross ceiling with its interval, guard band, hard cap and the preemptions of the same run.
        prefill: None when the prefill sweep found nothing.
        decode: None when no answer ended near the ceiling.
        latency: idle time to first token; None when it was not measured.
        output: lengths of answers; None when the mix was not sent as it is.
        lanes: the lanes with the proposed default ceilings.
        behaviour: the behavioural print.
        queue_share_ratio: part of the interactive TTFT objective that the engine leaves to the queue.
        remarks: what a reader should know, one sentence each.
    """

    budget: Budget
    prefill: Prefill | None
    decode: Decode | None
    latency: Latency | None
    output: Output | None
    lanes: Lanes
    behaviour: Behaviour
    queue_share_ratio: float
    remarks: tuple[str, ...]


def propose(result: Result, plan: Plan, facts: Facts) -> Proposal | None:
    """Return the sections that a result supports; None without a gross ceiling or a hard cap.

    The rate that held on the mix takes the place of the prefill sweep's; without one that did, a remark says so.
    """
    kv, cap, mix = (result.sweep(phase) for phase in (Phase.KV, Phase.CAP, Phase.CONFIRM))
    if kv is None or kv.knee is None or cap is None or cap.knee is None or not (kv.knee.low and cap.knee.low):
        return None
    remarks = []
    if kv.knee.high is None:
        remarks.append("no level of the gross ceiling's sweep broke: the replica may carry more")
    if kv.output_ratio is not None and kv.output_ratio < SHORT_OUTPUT_RATIO and kv.broke == "TPOT":
        remarks.append(
            f"answers ended at {kv.output_ratio:.0%} of their ceilings, and prompts between them broke the pace:"
            " the gross ceiling is that of this mix, and the KV cache may hold more"
        )
    if mix is None or mix.knee is None:
        remarks.append("the figures together were not confirmed on the mix")
    told = [sweep.preemptions_per_minute for sweep in (mix, cap) if sweep is not None]
    preemptions = next((rate for rate in told if rate is not None), None)
    if preemptions is None:
        remarks.append("the engine tells of no preemptions: none are permitted")
    low = max(int(kv.knee.low), 1)
    high = None if kv.knee.high is None else max(int(kv.knee.high), low)
    width = 0.0 if high is None else high / low - 1
    budget = Budget(
        gross_ceiling_tokens=low,
        gross_ceiling_low_tokens=low,
        gross_ceiling_high_tokens=high,
        guard_band_ratio=GUARD_BAND_RATIO + (min(width, 0.4) if width > WIDE_INTERVAL_RATIO else 0.0),
        hard_cap_sequences=max(int(cap.knee.low), 1),
        preemptions_per_minute=preemptions or 0.0,
        basis="calibrated",
        rule=RULE,
    )
    return Proposal(
        budget=budget,
        prefill=_prefill(result, plan, facts),
        decode=_decode(result),
        latency=_latency(result.idle),
        output=_output(result.output_tokens),
        lanes=_lanes(result.output_tokens, facts.lanes),
        behaviour=_behaviour(result.idle),
        queue_share_ratio=1 - plan.engine_share_ratio,
        remarks=tuple(remarks),
    )


def _prefill(result: Result, plan: Plan, facts: Facts) -> Prefill | None:
    """Return the rate, and as much in flight as two steps or half of the tightest TTFT bound at that rate permit."""
    found = [result.sweep(phase) for phase in (Phase.CONFIRM, Phase.PREFILL)]
    rates = [sweep.knee.low for sweep in found if sweep is not None and sweep.knee is not None and sweep.knee.low]
    if not rates:
        return None
    rate = rates[0]
    bounds = [WAITING_RATIO * rate * plan.tightest_ttft_seconds]
    if facts.step_budget_tokens is not None:
        bounds.append(ENGINE_STEPS * facts.step_budget_tokens)
    return Prefill(safe_tokens_per_second=rate, inflight_tokens=max(int(min(bounds)), 1))


def _decode(result: Result) -> Decode | None:
    kv, cap = result.sweep(Phase.KV), result.sweep(Phase.CAP)
    if kv is None or kv.pace_seconds is None:
        return None
    paces: dict[int, float] = {} if result.idle is None else {1: result.idle.decode_step_seconds}
    for sequences, seconds in () if cap is None else cap.paces:
        paces[int(sequences)] = seconds
    points = tuple(CurvePoint(sequences=n, seconds_per_token=paces[n]) for n in sorted(paces) if n)
    return Decode(seconds_per_token=kv.pace_seconds, curve=points)


def _latency(idle: Idle | None) -> Latency | None:
    if idle is None:
        return None
    return Latency(unloaded_ttft_p50_seconds=idle.ttft_p50_seconds, unloaded_ttft_p95_seconds=idle.ttft_p95_seconds)


def _output(tokens: tuple[int, ...]) -> Output | None:
    if not tokens:
        return None
    return Output(p50=_quantile(tokens, 0.5), p90=_quantile(tokens, 0.9), p99=_quantile(tokens, 0.99))


def _lanes(tokens: tuple[int, ...], lanes: Lanes) -> Lanes:
    """Return the lanes with a default ceiling that cuts few answers, within what each lane permits."""
    if not tokens:
        return lanes
    steps = -(-_quantile(tokens, DEFAULT_CEILING_SHARE) // CEILING_STEP_TOKENS)
    default = steps * CEILING_STEP_TOKENS
    interactive = lanes.interactive.model_copy(
        update={"default_output_tokens": min(default, lanes.interactive.max_output_tokens)}
    )
    most = lanes.bulk.max_output_tokens
    bulk = lanes.bulk.model_copy(update={"default_output_tokens": default if most is None else min(default, most)})
    return lanes.model_copy(update={"interactive": interactive, "bulk": bulk})


def _behaviour(idle: Idle | None) -> Behaviour:
    if idle is None:
        return Behaviour()
    return Behaviour(
        fixed_prompt_tokens=idle.fixed_prompt_tokens,
        fixed_prompt_prefill_seconds=idle.fixed_prompt_seconds,
        decode_step_seconds=idle.decode_step_seconds,
    )


def _quantile(ascending: tuple[int, ...], share: float) -> int:
    """Return the value that a share of the values does not exceed."""
    return ascending[min(int(share * len(ascending)), len(ascending) - 1)]
