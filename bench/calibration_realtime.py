"""`llmshed calibrate` in real time over HTTP, beside the truth: `python bench/calibration_realtime.py`, 15 minutes.

Both are programs as an operator starts them: a simulated replica whose answers run to their ceiling, and the command.
The truth is that of `bench/calibration_truth.py` for the same replica and mix, on a virtual clock and without noise.
Run it on a machine that has nothing else to do.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibration_cases import LANE, OBJECTIVES, ROOT
from calibration_truth import truth_of

from llmshed.calibration.plan import Plan, Shape
from llmshed.simulation.building import Parameters
from llmshed.simulation.hardware.parsing import parse_replica

LLMSHED = Path(sys.executable).with_name("llmshed")
REPLICA = "llama-3-8b-a10g"
LONGEST_PROMPT_TOKENS = 8_191
"""Of the context of its model, 8,192, all but one token of output."""
MIX = {(256, 128): 2, (1024, 256): 2, (2048, 512): 1}
"""Requests as (input, ceiling) in tokens, and how often: the mix that the command takes by default."""


@contextmanager
def replica(*options: str) -> Iterator[str]:
    """Run a simulated replica on a free port whose answers run to their ceiling, and give its address."""
    command = [str(LLMSHED), "simulate", "--port", "0", "--json", "--output-mean", "ceiling", *options]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LLMSHED_")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean) as process:
        try:
            told = ""
            while not (found := re.search(r'"url": ?"([^"]+)"', told)):
                told += process.stdout.readline() if process.stdout is not None else ""
            yield found[1]
        finally:
            process.terminate()


def typed(mix: dict[tuple[int, int], int]) -> str:
    """Return a mix as it is typed."""
    return ",".join(f"{size}/{ceiling}*{times}" for (size, ceiling), times in mix.items())


def plan_of(mix: dict[tuple[int, int], int], longest: int) -> Plan:
    """Return what the command makes of a mix with the objectives that ship."""
    shapes = tuple(Shape(*sizes, LANE) for sizes, times in mix.items() for _ in range(times))
    return Plan(shapes, OBJECTIVES, max_input_tokens=longest)


def calibrated(url: str, folder: Path, mix: dict[tuple[int, int], int], options: Sequence[str] = ()) -> dict[str, Any]:
    """Run the command and return its JSON."""
    out = str(folder / "measured.toml")
    command = [str(LLMSHED), "calibrate", url, "--profile-out", out, "--mix", typed(mix), "--json"]
    ran = subprocess.run([*command, *options], stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def compared(parameters: Parameters, plan: Plan, budget: dict[str, Any]) -> str:
    """Return a sentence on a measured budget and the truth of that replica."""
    truth, _ = truth_of(plan, parameters)
    low, high = budget["gross_ceiling_tokens"], budget.get("gross_ceiling_high_tokens")
    above = "no level broke" if high is None else f"at most {high:,}"
    return f"gross ceiling {low:,} ({above}), truth {truth:,.0f}: {low / truth:.3f} of it"


def main() -> None:
    """Measure and compare."""
    text = (ROOT / "profiles" / "replicas" / f"{REPLICA}.toml").read_text("utf-8")
    parameters = parse_replica(text, REPLICA).parameters
    plan = plan_of(MIX, LONGEST_PROMPT_TOKENS)
    with tempfile.TemporaryDirectory() as folder, replica("--replica", REPLICA) as url:
        told = calibrated(url, Path(folder), MIX, ("--seed", "7"))
    print(compared(parameters, plan, told["profile"]["budget"]))


if __name__ == "__main__":
    main()
