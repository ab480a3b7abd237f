"""Calibrations against the truth, in virtual time: `python bench/calibration.py [SEED ...]`.

Each case of `calibration_cases` is calibrated with each seed by the machine that `llmshed calibrate` drives, on a
replica whose step times are noisy. One row a run goes to `bench/data/calibration.csv`; the truth of each case is in
`bench/data/calibration_truth.csv`. `--table` prints what docs/calibration.md shows.
"""

import csv
import sys
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from random import Random

from calibration_cases import ROOT, SEEDS, Case, cases, natural_ends, noisy
from calibration_truth import read_truths
from virtual_replica import VirtualReplica
from virtual_run import VirtualRun

from llmshed.calibration import Calibration, Phase

RUNS = ROOT / "bench" / "data" / "calibration.csv"
WORDS = {"replica", "engine", "traffic", "ended"}
FIXED_STEP = 0.025
"""Step of the sweep that is compared with, of the truth: half of the window that a ceiling is to lie in."""
LEAST_ANSWERS = 32
"""Answers without a late one that tell a share from 5 % (Wilson's interval at 1.28 deviations)."""
WITHIN = 0.95
"""Part of the truth below which a ceiling gives too much away."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run: tokens, sequences, tokens a second, virtual seconds, and how it ended."""

    replica: str
    engine: str
    traffic: str
    seed: int
    ended: str
    ceiling_tokens: int
    point_tokens: int
    high_tokens: int
    prefill_tokens_per_second: int
    confirmed_tokens_per_second: int
    hard_cap_sequences: int
    sweep_requests: int
    requests: int
    seconds: int

    @property
    def case(self) -> Case:
        """Return its case."""
        return Case(self.replica, self.engine, self.traffic)


def run(case: Case, seed: int) -> Row:
    """Calibrate one case once; what was not found is 0."""
    draws = [Random(f"{case}/{seed}/{name}") for name in ("calibration", "noise", "ends")]  # noqa: S311 - a bench
    machine = Calibration(case.plan(), draws[0])
    ran = VirtualRun(machine, VirtualReplica(noisy(case.parameters(), draws[1]), natural_ends(draws[2]))).run()
    result = machine.result()
    knees = {
        sweep.phase: (sweep.knee.low, sweep.knee.point, sweep.knee.high or 0.0)
        for sweep in result.sweeps
        if sweep.knee is not None
    }
    kv, rate, cap, mix = (
        knees.get(phase, (0.0, 0.0, 0.0)) for phase in (Phase.KV, Phase.PREFILL, Phase.CAP, Phase.CONFIRM)
    )
    swept = result.sweep(Phase.KV)
    return Row(
        replica=case.replica,
        engine=case.engine,
        traffic=case.traffic,
        seed=seed,
        ended=ran.stop.reason.value,
        ceiling_tokens=int(kv[0]),
        point_tokens=int(kv[1]),
        high_tokens=int(kv[2]),
        prefill_tokens_per_second=int(rate[0]),
        confirmed_tokens_per_second=int(mix[0]),
        hard_cap_sequences=int(cap[0]),
        sweep_requests=0 if swept is None else swept.requests,
        requests=ran.requests,
        seconds=round(ran.seconds),
    )


def read_rows() -> list[Row]:
    """Return the runs that are written down."""
    with RUNS.open(encoding="utf-8", newline="") as rows:
        return [
            Row(**{name: value if name in WORDS else int(value) for name, value in row.items()})  # type: ignore[arg-type]
            for row in csv.DictReader(rows)
        ]


def write_rows(rows: list[Row]) -> None:
    """Write the runs down, in the order of cases and seeds."""
    places = {case: place for place, case in enumerate(cases())}
    with RUNS.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(field.name for field in fields(Row))
        writer.writerows(astuple(row) for row in sorted(rows, key=lambda row: (places[row.case], row.seed)))


def fixed_steps(case: Case, truth: float) -> int:
    """Return the least requests of a sweep in fixed steps that is as accurate, from the same first level to the knee.

    At each level all that runs has to be replaced once, and then enough answered to tell that the level holds.
    """
    plan = case.plan()
    reserved = sum(shape.reserved_tokens for shape in plan.mix) / len(plan.mix)
    level, requests = float(plan.first_level_tokens or 0), 0.0
    while level <= truth:
        requests += level / reserved + LEAST_ANSWERS
        level += FIXED_STEP * truth
    return round(requests)


def table(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of the table: one a case, then what holds over all runs."""
    truths = read_truths()
    yield "| replica | engine | traffic | truth | reported, of the truth | KV sweep | fixed steps | in all | minutes |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for case, truth in truths.items():
        of_case = [row for row in rows if row.case == case]
        if not of_case:
            continue
        shares = sorted(row.ceiling_tokens / truth for row in of_case)
        swept, sent = max(row.sweep_requests for row in of_case), max(row.requests for row in of_case)
        yield (
            f"| {case.replica} | {case.engine} | {case.traffic} | {truth:,.0f} | {shares[0]:.3f} to {shares[-1]:.3f} |"
            f" {swept:,} | {fixed_steps(case, truth):,} | {sent:,} | {max(row.seconds for row in of_case) / 60:.1f} |"
        )
    shares = [row.ceiling_tokens / truths[row.case] for row in rows]
    above = sum(share > 1 for share in shares)
    near = sum(WITHIN <= share <= 1 for share in shares)
    yield ""
    yield (
        f"Of {len(rows)} runs {above} ({above / len(rows):.1%}) report more than the truth, and {near}"
        f" ({near / len(rows):.1%}) at most 5 % less; the highest is {max(shares):.3f} of it, the lowest"
        f" {min(shares):.3f}. The longest took {max(row.seconds for row in rows) / 60:.1f} simulated minutes."
    )


def main(arguments: list[str]) -> None:
    """Run all cases with the seeds that are named, or print the table."""
    if arguments == ["--table"]:
        print("\n".join(table(read_rows())))
        return
    seeds = tuple(int(text) for text in arguments) or SEEDS
    rows = [row for row in read_rows() if row.seed not in seeds] if RUNS.exists() else []
    for seed in seeds:
        for case in cases():
            rows.append(run(case, seed))
            print(rows[-1], flush=True)
        write_rows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
