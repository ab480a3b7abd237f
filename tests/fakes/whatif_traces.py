"""Small traces and configurations for `llmshed whatif`, and what its tests read of its answers."""

import re
from pathlib import Path
from typing import Any

from conftest import Ran

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
_CONFIG = """
[lanes.interactive]
tpot_objective_seconds = 0.2

[[pools]]
name = "chat"
gross_ceiling_tokens = {ceiling}
replicas = [{{ name = "r1", url = "http://10.0.0.7:8080" }}]
"""


def azure(requests: int = 60, gap_seconds: float = 0.5) -> str:
    """Return a trace of the Azure form with even arrivals, prompts of 300 and 600 tokens and answers of 40."""
    rows = (
        f"2023-11-16 18:{int(at // 60):02}:{at % 60:010.7f},{300 * (1 + number % 2)},40\n"
        for number, at in enumerate(number * gap_seconds for number in range(requests))
    )
    return HEADER + "".join(rows)


def write_trace(folder: Path) -> Path:
    """Write 60 requests of 29.5 seconds and return their file."""
    path = folder / "trace.csv"
    path.write_text(azure())
    return path


def write_config(folder: Path, ceiling_tokens: int, name: str = "llmshed.toml") -> Path:
    """Write a configuration of one pool whose replicas lend so much, and return its file."""
    path = folder / name
    path.write_text(_CONFIG.format(ceiling=ceiling_tokens))
    return path


def told(ran: Ran) -> Any:
    """Return the object that a run printed, which ended well."""
    assert ran.exit_code == 0, ran.stderr
    return ran.json()


def totals(ran: Ran) -> dict[tuple[str, str, float], Any]:
    """Return the figures of all requests of each run, by configuration, policy and scale."""
    return {(run["configuration"], run["policy"], run["scale"]): run["report"]["total"] for run in told(ran)["runs"]}


def flowed(text: str) -> str:
    """Return a message as one line, without the frame that usage errors may have."""
    return " ".join(re.sub("[\u2500-\u257f]", " ", text).split())
