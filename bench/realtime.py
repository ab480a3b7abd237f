"""Goodput under overload in real time: one gateway before two simulated A10Gs, each a program of its own.

The replicas follow profiles/replicas/llama-3-8b-a10g.toml, whose steps take 30 to 60 ms, so that two cores carry the
engines, the gateway and the clients; the share of the machine that was busy is shown beside each row, since above some
70 % it is the machine that is measured. 1x is the rate, of a short climb, at which the tokens of good requests are
most. Run it alone, for it measures time: `python bench/realtime.py --minutes 5`; the first minute is always left out.
"""

import argparse
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from time import perf_counter, sleep

from realtime_traffic import Came, plan, play
from relaying import cpu_seconds, running

PROFILE = Path(__file__).parent / "profiles" / "llama-3-8b-a10g.toml"
REPLICA = ("simulate", "--replica", "llama-3-8b-a10g", "--tokenizer", "embedded", "--port", "0", "--json")
TTFT_SECONDS = {False: 2.0, True: 120.0}
"""TTFT objectives, of interactive work and of bulk."""
TPOT_SECONDS = 0.1
CLIMB = (5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
"""Requests a second that are tried for 1x."""
CLIMB_SECONDS = 45.0
CLIMB_WARM_SECONDS = 15.0
REFUSING_SECONDS = 60.0
SEED = 7


@dataclass(frozen=True, slots=True)
class Row:
    """One rate, and what came of its requests; `busy` are shares of all cores."""

    name: str
    rate: float
    seconds: float
    came: Sequence[Came]
    machine_busy: float
    own_busy: float

    @property
    def good(self) -> list[Came]:
        """Return the requests that met their objectives."""
        return [one for one in self.came if is_good(one)]

    @property
    def good_tokens_per_second(self) -> float:
        """Return prompt and output tokens of good requests, a second."""
        return sum(one.planned.input_tokens + one.output_tokens for one in self.good) / self.seconds


def is_good(one: Came) -> bool:
    """Say whether a request was answered in full and within its objectives."""
    if not one.whole or one.first_token_seconds is None:
        return False
    return one.first_token_seconds <= TTFT_SECONDS[one.planned.bulk] and one.seconds_per_token <= TPOT_SECONDS


@contextmanager
def fleet() -> Iterator[tuple[str, list[int]]]:
    """Run the gateway and both replicas; gives the gateway's URL and the processes."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        started = [stack.enter_context(running(folder / f"replica-{n}.log", *REPLICA)) for n in (1, 2)]
        config = folder / "llmshed.toml"
        replicas = ", ".join(f'{{ name = "r{n}", url = "{told["url"]}" }}' for n, (_, told) in enumerate(started, 1))
        config.write_text(
            f'[log]\ndecisions = "{folder / "decisions.jsonl"}"\n'
            f"[lanes.interactive]\nttft_objective_seconds = {TTFT_SECONDS[False]}\n"
            f'[[pools]]\ntokenizer = "embedded"\nprofile = "{PROFILE}"\nreplicas = [{replicas}]\n'
        )
        listeners = ("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
        pid, told = stack.enter_context(running(folder / "gateway.log", "serve", "--config", str(config), *listeners))
        url = told["data"] if "://" in told["data"] else f"http://{told['data']}"
        sleep(2.0)  # the second replica may be met a little later than the first
        yield url, [pid, *(replica for replica, _ in started), os.getpid()]


def measured(name: str, rate: float, seconds: float, warm_seconds: float) -> Row:
    """Run one rate before a fleet of its own; requests of the first `warm_seconds` do not count."""
    with fleet() as (url, pids):
        began, busy, own = perf_counter(), machine_seconds(), sum(map(cpu_seconds, pids))
        came = play(url, plan(rate, warm_seconds + seconds, SEED))
        wall = perf_counter() - began
        all_cores = wall * (os.cpu_count() or 1)
        machine_busy, own_busy = machine_seconds() - busy, sum(map(cpu_seconds, pids)) - own
    counted = [one for one in came if one.planned.at_seconds >= warm_seconds]
    return Row(name, rate, seconds, counted, machine_busy / all_cores, own_busy / all_cores)


def machine_seconds() -> float:
    """Return the CPU time that everything on this machine has used."""
    user, nice, system, _, _, irq, softirq, *_ = map(
        int, Path("/proc/stat").read_text("utf-8").split("\n")[0].split()[1:]
    )
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a Markdown table; shares are of the first row's tokens."""
    heads = (
        *("rate", "offered/s", "good tokens/s", "of 1x", "good requests/s", "good interactive", "good bulk"),
        *("mean good input", "TTFT p50 / p95", "refused", "time to refuse p50 / p99", "machine / own busy"),
    )
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for row in rows:
        yield f"| {' | '.join(_cells(row, rows[0].good_tokens_per_second))} |"


def _cells(row: Row, full: float) -> Iterator[str]:
    yield row.name
    yield f"{len(row.came) / row.seconds:.1f}"
    yield f"{row.good_tokens_per_second:,.0f}"
    yield f"{100 * row.good_tokens_per_second / full:.0f} %" if full else "-"
    yield f"{len(row.good) / row.seconds:.2f}"
    for bulk in (False, True):
        good, came = (sum(one.planned.bulk is bulk for one in some) for some in (row.good, row.came))
        yield f"{good} of {came}"
    inputs = [one.planned.input_tokens for one in row.good]
    yield f"{sum(inputs) / max(1, len(inputs)):,.0f}"
    firsts = [
        one.first_token_seconds for one in row.came if one.first_token_seconds is not None and not one.planned.bulk
    ]
    yield _two(firsts, 50, 95, "s", 1.0)
    refused = Counter(one.reason or f"status {one.status}" for one in row.came if one.status != 200)
    yield ", ".join(f"{reason} {number}" for reason, number in refused.most_common()) or "none"
    at_once = [
        one.answered_seconds
        for one in row.came
        if one.status == 429 and one.reason not in {"queue_timeout", "shed_priority"}
    ]
    yield _two(at_once, 50, 99, "ms", 1e3)
    yield f"{100 * row.machine_busy:.0f} % / {100 * row.own_busy:.0f} %"


def _two(values: Sequence[float], low: int, high: int, unit: str, factor: float) -> str:
    """Write two percentiles."""
    if len(values) < 2:
        return "-"
    cuts = quantiles(values, n=100, method="inclusive")
    return f"{factor * cuts[low - 1]:.2f} / {factor * cuts[high - 1]:.2f} {unit}"


def climbed() -> float:
    """Return the rate of the climb whose good tokens are most."""
    best = 0.0, CLIMB[0]
    for rate in CLIMB:
        row = measured("climb", rate, CLIMB_SECONDS, CLIMB_WARM_SECONDS)
        best = max(best, (row.good_tokens_per_second, rate))
        print(f"climb: {rate:g}/s, {row.good_tokens_per_second:,.0f} good tokens/s", file=sys.stderr)
    return best[1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Goodput in real time; see the head of this file.")
    parser.add_argument("--minutes", type=float, default=5.0, help="minutes of each rate")
    parser.add_argument("--warm-minutes", type=float, default=1.0, help="minutes before that which do not count")
    parser.add_argument("--rate", type=float, help="requests a second at 1x; default: climb to it")
    parser.add_argument("--scales", default="1,2,5", help="multiples of that rate")
    parser.add_argument("--no-refusing", action="store_true", help="leave out 10x, at which refusals are timed")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # or the programs that were started would stay
    rate = given.rate or climbed()
    seconds, warm = 60 * given.minutes, 60 * given.warm_minutes
    rows = [measured(f"{scale}x", float(scale) * rate, seconds, warm) for scale in given.scales.split(",")]
    if not given.no_refusing:
        rows.append(measured("10x", 10 * rate, min(seconds, REFUSING_SECONDS), min(warm, 15.0)))
    print(f"\nreal time, two simulated A10Gs, seed {SEED}, load average {os.getloadavg()[0]:.1f} at the end")
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
