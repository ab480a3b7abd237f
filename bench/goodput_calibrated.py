"""Goodput with profiles that were calibrated: `python bench/goodput_calibrated.py`, ten minutes.

The grid of `bench/goodput.py` takes its profiles from `bench/sweep.py`: exhaustive, without noise. Here each replica is
calibrated as an operator would, by the machine of `llmshed calibrate` in virtual time, with noisy steps, the mix of the
slice and the objectives of the bench's configuration, and ours is run with both profiles at the same rates. Profiles go
to `bench/profiles/calibrated`; the table is that of docs/performance.md.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import tomli_w
from calibration_cases import noisy
from goodput_case import case_named
from goodput_cases import SCALES, Case, Cell, sliced
from goodput_grid import ORACLE, Measure, Remembered
from goodput_rows import Row, from_csv
from goodput_runs import CALIBRATED, config_of, replica_of
from virtual_replica import VirtualReplica
from virtual_run import VirtualRun

from llmshed.calibration import Calibration, Objective, Plan, Shape
from llmshed.calibration.proposal import Facts, propose
from llmshed.profile import Profile
from llmshed.whatif.gates.table import OURS
from llmshed.workload.asks import Ask
from llmshed.workload.ceilings import with_ceilings

ROWS = Path(__file__).resolve().parent / "data" / "goodput.csv"
NAMES = (
    "azure_code/llama-3-8b-a10g/pow2",
    "azure_conv/llama-3-8b-a10g/pow2",
    "azure_code/llama-3-8b-h100/pow2",
    "azure_conv/llama-3-8b-h100/pow2",
)
MEASURED = ("budget", "prefill", "decode", "latency", "output")
"""Sections that a calibration gives; the rest stays as in the profile that is compared with."""
PROCESSES = 2


def calibrated(case: Case) -> Profile:
    """Return the profile of a case's replica as a calibration on the case's own traffic finds it.

    Raises:
        ValueError: it finds none.
    """
    parameters, derived = replica_of(case.replica)
    lanes = config_of(derived).lanes
    interactive, bulk = lanes.interactive, lanes.bulk
    plan = Plan(
        mix=tuple(_mix(case, interactive.max_input_tokens, interactive.max_output_tokens, parameters.max_total_tokens)),
        objectives={
            "interactive": Objective(interactive.ttft_objective_seconds, interactive.tpot_objective_seconds),
            "bulk": Objective(bulk.ttft_objective_seconds, bulk.tpot_objective_seconds),
        },
        engine_share_ratio=1 - interactive.queue_share_ratio,
        max_input_tokens=parameters.max_input_tokens,
    )
    draws, noise, ends = (Random(f"{case}/{name}") for name in ("calibration", "noise", "ends"))  # noqa: S311 - a bench
    machine = Calibration(plan, draws)

    def natural(ask: Ask) -> int:
        """Return a length of which the ceiling is the next power of two, as the slice's ceilings are."""
        return ends.randint(ask.ceiling_tokens // 2 + 1, ask.ceiling_tokens)

    VirtualRun(machine, VirtualReplica(noisy(parameters, noise), natural, ignores_ends=False)).run()
    proposal = propose(machine.result(), plan, Facts(derived.lanes, parameters.max_batch_prefill_tokens))
    if proposal is None:
        raise ValueError(f"{case}: no profile")
    for remark in proposal.remarks:
        print(f"{case.trace}, {case.replica}: {remark}", file=sys.stderr)
    found = {name: section for name in MEASURED if (section := getattr(proposal, name)) is not None}
    return derived.model_copy(update={"name": f"{case.trace.replace('_', '-')}-{case.replica}", **found})


def _mix(case: Case, most_input: int, most_output: int, most_total: int) -> Iterator[Shape]:
    for request in with_ceilings(sliced(case), case.ceiling):
        ceiling = request.asked_output_tokens or 1
        if request.input_tokens + ceiling <= most_total:
            small = request.input_tokens <= most_input and ceiling <= most_output
            yield Shape(request.input_tokens, ceiling, "interactive" if small else "bulk")


def write(case: Case, profile: Profile) -> None:
    """Write a profile where the runs read it."""
    told: dict[str, Any] = profile.model_dump(mode="python", by_alias=True, exclude_none=True, exclude_defaults=True)
    head = f"# profiles/replicas/{case.replica}.toml, calibrated in virtual time on {case.trace}, ceilings"
    comment = (
        f"{head} {case.ceiling.value}:\n# `python bench/goodput_calibrated.py`. Nothing here was measured on a GPU.\n"
    )
    CALIBRATED.mkdir(exist_ok=True)
    (CALIBRATED / f"{case.trace}-{case.replica}.toml").write_text(comment + tomli_w.dumps(told), encoding="utf-8")


def table(cases: Sequence[Case], kept: Sequence[Row], measure: Measure) -> Iterator[str]:
    """Yield the lines of the table: good tokens in percent of the oracle's at 1x, and what the profiles say."""
    head = ("trace", "GPU", "profile", "gross ceiling", "hard cap", "prompt tokens/s", "ours, % of the oracle's at 1x")
    yield f"| {' | '.join((*head, 'of the derived'))} |"
    yield "|---|---|---|---|---|---|---|---|"
    for case in cases:
        place = (case.trace, case.replica, case.ceiling.value)
        oracle = {
            row.scale: row for row in kept if row.place == place and row.policy == ORACLE and not row.step_time_error
        }
        cells = {
            kind: [Cell(case, OURS, oracle[scale].rate, calibrated=kind) for scale in SCALES] for kind in (False, True)
        }
        results = measure([cell for row in cells.values() for cell in row])
        good = {kind: [results[cell]["good_tokens_per_second"] for cell in row] for kind, row in cells.items()}
        for kind, row in good.items():
            _, profile = replica_of(case.replica, case.trace if kind else None)
            budget, rate = profile.budget, profile.prefill
            shares = " / ".join(f"{100 * one / oracle[SCALES[0]].good_tokens:.0f}" for one in row)
            beside = " / ".join(f"{100 * one / other:.0f} %" for one, other in zip(row, good[False], strict=True))
            figures = (
                case.trace,
                case.replica.rpartition("-")[2].upper(),
                "calibrated" if kind else "derived",
                f"{budget.gross_ceiling_tokens:,}",
                f"{budget.hard_cap_sequences:,}",
                "-" if rate is None else f"{rate.safe_tokens_per_second:,.0f}",
                shares,
                beside if kind else "",
            )
            yield f"| {' | '.join(figures)} |"


def main() -> None:
    """Calibrate each case, run ours with both profiles, and print the table."""
    cases = [case_named(name) for name in NAMES]
    for case in cases:
        write(case, calibrated(case))
    with tempfile.TemporaryDirectory() as folder:
        forgotten = Remembered(Path(folder) / "cells.jsonl", PROCESSES)
        print("\n".join(table(cases, from_csv(ROWS.read_text("utf-8")), forgotten.measure)))


if __name__ == "__main__":
    main()
