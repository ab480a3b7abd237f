"""What each rung brings in a burst: the same requests before one replica with and without it, in virtual time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from random import Random
from typing import Any

from staged import SHARED, shipped_stage, watched_controller

from llmshed.admission.events import RungHeld
from llmshed.admission.request import CLASSES, Intent, PriorityClass
from llmshed.ladder.model import Ladder, Rung
from llmshed.ladder.standing import Hold
from llmshed.whatif.report import RunReport
from llmshed.whatif.setting import Setting
from llmshed.whatif.world import RunPlan, simulate
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

REPLICA = "llama-3-8b-a10g"
SECONDS = 120.0
CAP_TOKENS = 128
EDGES = (250, 700, 1_500)


@dataclass(frozen=True, slots=True)
class Crowd:
    """A burst: requests a second, mean prompt and mean answer of interactive ones in tokens."""

    rate: float
    prompt_tokens: int
    answer_tokens: int


CROWDS = {"long answers": Crowd(6.0, 200, 400), "long prompts": Crowd(12.0, 700, 150)}
"""Where answers are long the KV cache is what is short of, where prompts are, prefill."""
_RUNGS: dict[str, dict[str, Any]] = {
    "stop-bulk": {"action": "stop_bulk"},
    "cap-output": {"action": "cap_output", "max_output_tokens": CAP_TOKENS},
    "shed-low": {"action": "shed_interactive", "scope": {"classes": ("low",)}},
}
CASES: dict[str, tuple[str, ...]] = {
    "no rung": (),
    "stop bulk": ("stop-bulk",),
    "cap output": ("cap-output",),
    "stop bulk, cap output": ("stop-bulk", "cap-output"),
    "stop bulk, shed low": ("stop-bulk", "shed-low"),
    "stop bulk, cap output, shed low": ("stop-bulk", "cap-output", "shed-low"),
}
"""The rungs that are held from the beginning, by the name of the case."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a rung of the gateway leaves of each request: parts of its prompt and of its answer, 1 for all."""

    prompt_ratio: float = 1.0
    answer_ratio: float = 1.0


CHANGES = {
    "drop enrichment": Change(prompt_ratio=0.7),
    "shrink context": Change(prompt_ratio=0.5),
    "disable thinking": Change(answer_ratio=0.4),
}
"""Rungs that change requests before they are counted, played as shorter ones: a trace holds no text to shorten.

How much they leave is assumed; ceilings stay, since nobody asks for less for it.
"""


@dataclass(frozen=True, slots=True)
class Brought:
    """What a case gave.

    Args:
        goodput: good requests a second.
        kept: share of each class's interactive requests that met their objectives.
        ttft_p95_seconds: of interactive requests that finished.
        output_tokens_per_second: made while the burst lasted.
        degraded_share: part of the finished answers that a rung changed.
    """

    goodput: float
    kept: dict[PriorityClass, float]
    ttft_p95_seconds: float
    output_tokens_per_second: float
    degraded_share: float


def burst(crowd: Crowd, seconds: float, change: Change = Change()) -> Iterator[TracedRequest]:
    """Yield requests at Poisson times, three of ten bulk with four times the prompt.

    Lengths are exponential, ceilings the next power of two.
    """
    rng = Random("rungs")  # noqa: S311 - traffic is made up, nothing is kept secret
    at = 0.0
    while (at := at + rng.expovariate(crowd.rate)) < seconds:
        bulk = rng.random() < 0.3
        mean = crowd.prompt_tokens * (4 if bulk else 1)
        output = min(1 + int(rng.expovariate(1 / crowd.answer_tokens)), 1_000)
        prompt = min(1 + int(rng.expovariate(1 / mean)), 4_000)
        yield TracedRequest(
            at,
            max(1, round(change.prompt_ratio * prompt)),
            max(1, round(change.answer_ratio * output)),
            asked_output_tokens=min(1 << output.bit_length(), 1_024),
            intent=Intent.BULK if bulk else Intent.INTERACTIVE,
            priority_class=rng.choice((PriorityClass.HIGH, *(PriorityClass.NORMAL, PriorityClass.LOW) * 2)),
        )


def brought(
    rungs: tuple[str, ...],
    crowd: Crowd,
    seconds: float = SECONDS,
    change: Change = Change(),
) -> Brought:
    """Play the burst with those rungs held, or its requests changed, and return what came of it."""
    setting = _on_ladder(shipped_stage(REPLICA, 1, SHARED), rungs)
    gate = watched_controller(setting)
    if rungs:
        gate.handle(RungHeld(setting.policy.pools[0].name, Hold(rungs[-1], 1e9, "bench")), 0.0)
    report = simulate(
        setting,
        gate,
        burst(crowd, seconds, change),
        ClientModel.NONE,
        Random(0),  # noqa: S311 - nobody draws
        RunPlan(EDGES),
    )
    return _figures(report)


def _on_ladder(setting: Setting, rungs: tuple[str, ...]) -> Setting:
    """Put the rungs, if any, onto the only pool, and let every class be asked for."""
    made = tuple(
        Rung.model_validate(
            {"name": name, "owner": "bench", "agreed_on": date(2026, 12, 1), **_RUNGS[name]}, strict=False
        )
        for name in rungs
    )
    named = {"schema": "llmshed.ladder/1", "name": "bench", "version": "1"}
    ladder = Ladder.model_validate({**named, "rungs": made}) if made else None
    policy = setting.policy
    return replace(
        setting,
        policy=replace(
            policy,
            pools=tuple(replace(pool, ladder=ladder) for pool in policy.pools),
            tenants={name: replace(one, top_class=PriorityClass.HIGH) for name, one in policy.tenants.items()},
        ),
    )


def _figures(report: RunReport) -> Brought:
    if report.ledger.broken_invariants_count:
        raise RuntimeError(report.ledger.broken_invariants[0])
    interactive = [cell for cell in report.cells if cell.lane == "interactive"]
    kept = {}
    for priority_class in CLASSES:
        mine = [cell.slice for cell in interactive if cell.priority_class == priority_class]
        kept[priority_class] = sum(one.good for one in mine) / sum(one.arrived - one.infeasible for one in mine)
    degraded = 0 if report.ladders is None else report.ladders.degraded
    return Brought(
        goodput=report.total.goodput_requests_per_second,
        kept=kept,
        ttft_p95_seconds=report.lanes["interactive"].ttft_seconds.p95 or 0.0,
        output_tokens_per_second=report.total.throughput_output_tokens_per_second,
        degraded_share=degraded / report.total.finished,
    )


def main() -> None:
    """Print a row for each crowd and case, as docs/ladder.md has it."""
    print("| crowd | rungs in force | goodput | high | normal | low | TTFT p95 | output tokens | changed answers |")
    print("|---|---|---|---|---|---|---|---|---|")
    for of, crowd in CROWDS.items():
        played = {name: brought(rungs, crowd) for name, rungs in CASES.items()}
        played |= {name: brought((), crowd, change=change) for name, change in CHANGES.items()}
        for name, one in played.items():
            kept = " | ".join(f"{100 * one.kept[priority_class]:.0f} %" for priority_class in CLASSES)
            print(
                f"| {of} | {name} | {one.goodput:.2f} /s | {kept} | {one.ttft_p95_seconds:.2f} s"
                f" | {one.output_tokens_per_second:,.0f} /s | {100 * one.degraded_share:.0f} % |"
            )


if __name__ == "__main__":
    main()
