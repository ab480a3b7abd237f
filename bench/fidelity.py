"""How true the simulated replica is: published measurements of real engines beside what the model makes of them.

    python bench/fidelity.py [DIRECTORY OF THE REFERENCE DATA]

prints the tables of docs/simulation.md, "How true it is"; a test holds that the page shows these very figures. Nothing
is drawn and no clock is read, so that two runs print the same.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path

import measured
import tomli
from replaying import Outcome, peak, quantile, replay
from slora import SloraPool, replay_slora

from llmshed.simulation.cost import StepTimes, StepWork
from llmshed.simulation.hardware.derivation import derive
from llmshed.simulation.hardware.model import ReplicaDescription, ReplicaFile
from llmshed.simulation.hardware.parsing import parse_replica
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.simulation.vllm.scheduler import VllmScheduler

ROOT = Path(__file__).resolve().parents[1]
REPLICAS = ROOT / "profiles" / "replicas"
SHARES = (0.5, 0.9, 0.95)
LONE_HEAD = ("measured, simulated, ms", *(f"{n:,} tokens" for n in (512, 1024, 2048, 4096, 8192)), "decode step")
SPEEDS = ("x 100", "x 300", "x 1,000", "x 2,000")
SLORA = SloraPool(kv_tokens=10_000, prefill_tokens=3_072)
"""`--num-token` of fair_bench/launch_server.py; the larger of a sixth of it and the longest request (api_server.py)."""

Row = tuple[str, str, str, str]


def replica(name: str) -> ReplicaDescription:
    """Return what a shipped replica file says."""
    return parse_replica((REPLICAS / f"{name}.toml").read_text("utf-8"), name)


def file_rows() -> list[tuple[str, ...]]:
    """Tell what follows from each shipped replica file."""
    rows: list[tuple[str, ...]] = []
    for path in sorted(REPLICAS.glob("*.toml")):
        parameters = replica(path.stem).parameters
        times = parameters.step_times
        seconds = (times.weights_seconds * 1e3, times.seconds_per_prefill_token * 1e6)
        rows.append(
            (
                f"`{path.stem}`",
                f"{parameters.kv_tokens:,}",
                f"{seconds[0]:.1f} ms",
                f"{seconds[1]:.0f} us",
                f"{times.seconds_per_resident_token * 1e9:.0f} ns",
            )
        )
    return rows


def step_rows() -> list[Row]:
    """Compare forward passes of Llama-7B on an A10G: the mean over batches, and the errors of single ones.

    No engine ran, so neither its fixed time a step nor its time a sequence is counted.
    """
    shipped = replica("llama-2-7b-a10g").parameters.step_times
    times = replace(shipped, step_seconds=0.000_01, seconds_per_sequence=0.0)
    prefills, decodes = [], []
    for one in measured.passes():
        prefills.append((one.prefill_seconds, times.seconds(_prefill(one))))
        decodes.append((one.decode_seconds / one.output_tokens, times.seconds(_decode(one))))
    small = [pair for pair, one in zip(prefills, measured.passes(), strict=True) if _tokens(one) < 600]
    large = [pair for pair, one in zip(prefills, measured.passes(), strict=True) if _tokens(one) >= 600]
    return [
        _spread(f"prefill of 1,104 to 9,856 tokens, {len(large)} batches", large),
        _spread(f"prefill of 296 to 584 tokens, {len(small)} batches", small),
        _spread(f"decode step of 13 to 1,111 sequences, {len(decodes)} batches", decodes),
    ]


def lone_rows() -> list[tuple[str, ...]]:
    """Compare lone prompts of Llama-2-70B on H100s: a row for each number of GPUs."""
    rows: list[tuple[str, ...]] = []
    for gpus in sorted({one.gpus for one in measured.lone()}):
        run = [one for one in measured.lone() if one.gpus == gpus]
        times = _llama_2_70b_times(gpus)
        first = (_beside(one.first_token_seconds * 1e3, _first_token(times, one) * 1e3) for one in run)
        steps = sum(one.step_seconds for one in run) / len(run)
        made = sum(_lone_step(times, one) for one in run) / len(run)
        rows.append((f"{gpus} GPUs", *first, _beside(steps * 1e3, made * 1e3)))
    return rows


def arena_rows(data: Path) -> list[tuple[str, ...]]:
    """Compare the arena trace: S-LoRA as measured, its rules on our step times, and TGI's scheduler."""
    truth = measured.arena(data)
    requests = [one.sent for one in truth]
    parameters = replica("llama-2-7b-a10g").parameters
    if not isinstance(parameters, ReplicaParameters):
        raise TypeError("llama-2-7b-a10g is a file of TGI")
    unlimited = replace(parameters, max_concurrent_requests=len(requests), prefix_caching=False)
    runs = [truth, replay_slora(parameters.step_times, SLORA, requests), replay(Scheduler(unlimited), requests)]
    figures = [_arena_figures(run) for run in runs]
    return [(name, *_figure_cells([figure[index] for figure in figures])) for index, name in enumerate(_ARENA_NAMES)]


def slora_errors(data: Path, more_step_seconds: float) -> list[float]:
    """Return the relative errors of the arena trace's figures, with S-LoRA's rules and a longer step."""
    truth = measured.arena(data)
    times = replica("llama-2-7b-a10g").parameters.step_times
    slower = replace(times, step_seconds=times.step_seconds + more_step_seconds)
    run = replay_slora(slower, SLORA, [one.sent for one in truth])
    pairs = zip(_arena_figures(truth), _arena_figures(run), strict=True)
    return [made / told - 1 for told, made in pairs]


_ARENA_NAMES = (
    *(f"first token, p{share * 100:.0f}, s" for share in SHARES),
    *(f"whole answer, p{share * 100:.0f}, s" for share in SHARES),
    "tokens a second",
    "until the last answer, s",
)


def burst_rows(data: Path) -> list[tuple[str, ...]]:
    """Compare the runs of vLLM, each a column; they were sped up more and more."""
    courses = [(truth, _burst_course(speed)) for speed, truth in measured.courses(data).items()]
    return [
        (name, *(_beside(getattr(truth, field), getattr(made, field)) for truth, made in courses))
        for field, name in _BURST_NAMES.items()
    ]


_BURST_NAMES = {
    "seconds": "until the last answer, s",
    "prompt_tokens_per_second": "prompt tokens a second",
    "output_tokens_per_second": "output tokens a second",
    "peak_running": "most running",
    "peak_waiting": "most waiting",
    "peak_kv_percent": "most KV in use, %",
}


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(head)}", *lines[1:]])


def tables(data: Path) -> dict[str, str]:
    """Return every table of the page, by what it is about."""
    return {
        "files": table(("file", "KV tokens", "weights", "prompt token", "KV token"), file_rows()),
        "steps": table(("step", "measured, mean", "simulated, mean", "error, root mean square"), step_rows()),
        "lone": table(LONE_HEAD, lone_rows()),
        "arena": table(("", "measured", "S-LoRA's rules, our step times", "TGI's scheduler"), arena_rows(data)),
        "burst": table(("measured, simulated", *SPEEDS), burst_rows(data)),
    }


def _llama_2_70b_times(gpus: int) -> StepTimes:
    """Return the step times of Llama-2-70B on the GPUs, and with the efficiency, of the shipped file of its successor.

    The two differ in their vocabulary only: 32,000 tokens here (config.json of meta-llama/Llama-2-70b-hf).
    """
    file = ReplicaFile.model_validate(tomli.loads((REPLICAS / "llama-3.1-70b-4xh100.toml").read_text("utf-8")))
    tokens = 32_000
    fewer = 2 * (file.model.vocabulary_size - tokens) * file.model.hidden_size
    shape = {"vocabulary_size": tokens, "parameters": file.model.parameters - fewer}
    model = file.model.model_copy(update=shape)
    return derive(model, file.gpu.model_copy(update={"count": gpus}), file.efficiency).step_times


def _first_token(times: StepTimes, one: measured.Lone) -> float:
    pairs = one.prompt_tokens * (one.prompt_tokens + 1) // 2
    return times.seconds(StepWork(prefill_tokens=one.prompt_tokens, attention_pairs=pairs))


def _lone_step(times: StepTimes, one: measured.Lone) -> float:
    return times.seconds(StepWork(decoding_sequences=1, resident_tokens=one.prompt_tokens + 64))


def _tokens(one: measured.Passes) -> int:
    return one.sequences * one.input_tokens


def _prefill(one: measured.Passes) -> StepWork:
    pairs = one.sequences * one.input_tokens * (one.input_tokens + 1) // 2
    return StepWork(prefill_tokens=_tokens(one), attention_pairs=pairs)


def _decode(one: measured.Passes) -> StepWork:
    """Return the work of the middle one of the decode steps, whose time is their mean."""
    resident = one.sequences * (2 * one.input_tokens + one.output_tokens + 1) // 2
    return StepWork(decoding_sequences=one.sequences, resident_tokens=resident)


def _spread(name: str, pairs: Sequence[tuple[float, float]]) -> Row:
    truth, made = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    spread = sqrt(sum((one / other - 1) ** 2 for other, one in pairs) / len(pairs))
    return name, f"{truth * 1e3:,.0f} ms", f"{made * 1e3:,.0f} ms", f"{spread * 100:.0f} %"


def _arena_figures(run: Sequence[Outcome]) -> tuple[float, ...]:
    end = max(one.ended_at for one in run)
    tokens = sum(one.sent.input_tokens + one.sent.output_tokens for one in run)
    first = (quantile((one.first_token_seconds for one in run), share) for share in SHARES)
    whole = (quantile((one.whole_seconds for one in run), share) for share in SHARES)
    return (*first, *whole, tokens / end, end)


def _figure_cells(figures: Sequence[float]) -> tuple[str, ...]:
    truth, *others = figures
    return (_shown(truth), *(f"{_shown(made)} ({_error(truth, made)})" for made in others))


def _burst_course(speed: int) -> measured.Course:
    requests = measured.burst(speed)
    parameters = replica("llama-3.2-1b-rtx3090").parameters
    if not isinstance(parameters, VllmParameters):
        raise TypeError("llama-3.2-1b-rtx3090 is a file of vLLM")
    run = replay(VllmScheduler(parameters), requests)
    seconds = max(one.ended_at for one in run) - min(one.sent.at for one in run)
    return measured.Course(
        seconds,
        sum(one.sent.input_tokens for one in run) / seconds,
        sum(one.sent.output_tokens for one in run) / seconds,
        peak([one.first_at for one in run], [one.ended_at for one in run]),
        peak([one.sent.at for one in run], [one.first_at for one in run]),
        max(_held_tokens(run, one.ended_at) for one in run) / parameters.kv_tokens * 100,
    )


def _held_tokens(run: Iterable[Outcome], at: float) -> float:
    """Return the KV in use at an instant, with each answer taken to grow evenly from its first to its last token."""
    return sum(
        one.sent.input_tokens + one.sent.output_tokens * (at - one.first_at) / max(one.ended_at - one.first_at, 1e-9)
        for one in run
        if one.first_at <= at <= one.ended_at
    )


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _beside(truth: float, made: float) -> str:
    return f"{_shown(truth)}, {_shown(made)} ({_error(truth, made)})"


def _error(truth: float, made: float) -> str:
    percent = round((made / truth - 1) * 100)
    return f"{percent:+d} %" if percent else "0 %"


def main() -> None:
    """Print the tables."""
    default = os.environ.get("TEST_DATA") or ROOT.parent / "shared" / "data"
    for name, text in tables(Path(sys.argv[1] if len(sys.argv) > 1 else default)).items():
        print(f"\n{name}\n\n{text}")


if __name__ == "__main__":
    main()
