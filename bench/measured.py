"""What real engines did, read from the reference data and from `bench/data`."""

import csv
import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

from replaying import Outcome, Sent

from llmshed.workload.readers.arena import read_measured
from llmshed.workload.readers.reading import Reading

OWN = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True, slots=True)
class Passes:
    """Forward passes of one batch: a prefill of equal prompts, and decode steps after it; times in seconds."""

    sequences: int
    input_tokens: int
    output_tokens: int
    prefill_seconds: float
    decode_seconds: float


@dataclass(frozen=True, slots=True)
class Lone:
    """One prompt at a time on several GPUs: time to its first token, and of a decode step after it; in seconds."""

    gpus: int
    prompt_tokens: int
    first_token_seconds: float
    step_seconds: float


@dataclass(frozen=True, slots=True)
class Course:
    """What an engine told of one run: its length, tokens a second, and the most that ran, waited and was cached."""

    seconds: float
    prompt_tokens_per_second: float
    output_tokens_per_second: float
    peak_running: float
    peak_waiting: float
    peak_kv_percent: float


def passes() -> list[Passes]:
    """Return the forward passes of Llama-7B on an A10G."""
    return [
        Passes(int(row["sequences"]), int(row["input_tokens"]), int(row["output_tokens"]), *_times(row))
        for row in _rows(OWN / "llama_7b_a10g_steps.csv")
    ]


def lone() -> list[Lone]:
    """Return the lone prompts of Llama-2-70B on H100s."""
    return [
        Lone(
            int(row["gpus"]),
            int(row["prompt_tokens"]),
            float(row["first_token_seconds"]),
            float(row["step_seconds"]),
        )
        for row in _rows(OWN / "llama_2_70b_h100_steps.csv")
    ]


def burst(speed: float) -> list[Sent]:
    """Return the requests of the vLLM runs, sped up."""
    return [
        Sent(float(row["arrival_s"]) / speed, int(row["input_tokens"]), int(row["output_tokens"]))
        for row in _rows(OWN / "burstgpt_requests.csv")
    ]


def arena(data: Path) -> list[Outcome]:
    """Return the requests of the arena trace with the latencies that were measured.

    Raises:
        ValueError: a request has none.
    """
    outcomes = []
    content = gzip.decompress((data / "traces" / "arena_fcfs_a10g.csv.gz").read_bytes())
    for one in read_measured([content], Reading(Random(0))):  # noqa: S311 - nothing is missing, so nothing is drawn
        if one.first_token_seconds is None or one.whole_seconds is None:
            raise ValueError(f"{one.request} was not measured")
        at = one.request.at_seconds
        sent = Sent(at, one.request.input_tokens, one.request.true_output_tokens)
        outcomes.append(Outcome(sent, at + one.first_token_seconds, at + one.whole_seconds))
    return outcomes


def courses(data: Path) -> dict[int, Course]:
    """Return the courses of the vLLM runs by how often they were sped up."""
    samples: dict[int, list[dict[str, float]]] = {}
    for row in _rows(data / "metrics" / "vllm_overload_timeline.csv.gz"):
        speed = int(row.pop("run").removeprefix("scale"))
        samples.setdefault(speed, []).append({name: float(value) for name, value in row.items()})
    return {speed: _course(run) for speed, run in samples.items()}


def _course(run: list[dict[str, float]]) -> Course:
    busy = [sample for sample in run if sample["num_running"] > 0]
    seconds = busy[-1]["t_s"] - busy[0]["t_s"]
    return Course(
        seconds,
        _total(run, "prompt_tok_per_s") / seconds,
        _total(run, "gen_tok_per_s") / seconds,
        max(sample["num_running"] for sample in run),
        max(sample["num_pending"] for sample in run),
        max(sample["kv_cache_pct"] for sample in run),
    )


def _total(run: list[dict[str, float]], rate: str) -> float:
    return sum(after[rate] * (after["t_s"] - before["t_s"]) for before, after in pairwise(run))


def _times(row: dict[str, str]) -> tuple[float, float]:
    return float(row["prefill_seconds"]), float(row["decode_seconds"])


def _rows(path: Path) -> Iterable[dict[str, str]]:
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    return csv.DictReader(text.decode().splitlines())
