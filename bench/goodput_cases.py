"""What `bench/goodput.py` runs: slices of three traces, two kinds of replica, three ceiling rules; and its cells."""

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import dropwhile, takewhile
from pathlib import Path
from random import Random

from llmshed.whatif.gates.levels import OracleLevel
from llmshed.workload.ceilings import CeilingRule, with_ceilings
from llmshed.workload.formats import format_named
from llmshed.workload.readers.reading import Reading
from llmshed.workload.request import TracedRequest
from llmshed.workload.scaling import in_rate, in_time

ROOT = Path(__file__).resolve().parents[1]
SCALES = (1.0, 2.0, 5.0, 10.0)
CEILINGS = (CeilingRule.POW2, CeilingRule.FLAT1024, CeilingRule.FLAT4096)
STEP_TIME_ERRORS = (-0.2, 0.2)


@dataclass(frozen=True, slots=True)
class Case:
    """One trace before some replicas of one kind under one ceiling rule; 1x is found for each.

    Args:
        trace: name in `TRACES`.
        replica: name of a file of `profiles/replicas`, and of its profile in `bench/profiles`.
        replicas: how many there are.
        begin_seconds: where the slice of the trace begins.
        seconds: how long it is.
        hurry: how many times as fast as it came the slice is played; its rate is set apart from that.
        overlay: copies of the trace, laid over each other, whose rate counts as its own when 1x is looked for.
        gateway_time: whether the gateway's own time for each request is charged.
        ceiling: where output ceilings come from.
    """

    trace: str
    replica: str
    replicas: int
    begin_seconds: float
    seconds: float
    hurry: int
    overlay: int
    gateway_time: bool
    ceiling: CeilingRule

    @property
    def offered_seconds(self) -> float:
        """Return how long its traffic arrives."""
        return self.seconds / self.hurry


@dataclass(frozen=True, slots=True)
class Cell:
    """One run.

    Args:
        case: before what.
        policy: name in the table of gates.
        rate: factor on the rate at which the slice came.
        clients: name of the client model.
        step_time_error: by how much the engines' steps are longer than profile, oracle and objectives take them to be.
        level_tokens: level of the oracle; None for any other policy.
        reserve_ratio: reserve of the oracle, likewise.
        worth_ratio: least worth of the oracle, likewise.
        calibrated: whether the profile is one that was calibrated on the trace, and not that of `bench/sweep.py`.
    """

    case: Case
    policy: str
    rate: float
    clients: str = "none"
    step_time_error: float = 0.0
    level_tokens: int | None = None
    reserve_ratio: float | None = None
    worth_ratio: float | None = None
    calibrated: bool = False

    @property
    def level(self) -> OracleLevel | None:
        """Return the level of the oracle; None for any other policy."""
        if self.level_tokens is None or self.reserve_ratio is None or self.worth_ratio is None:
            return None
        return OracleLevel(self.level_tokens, self.reserve_ratio, self.worth_ratio)


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace of the reference data: its file, and its format in `workload.formats`."""

    file: str
    format_name: str


TRACES = {
    "azure_code": TraceFile("azure_code_2023.csv.gz", "azure"),
    "azure_conv": TraceFile("azure_conv_2023_first40min.csv.gz", "azure"),
    "mooncake": TraceFile("mooncake_conversation_first40min.jsonl.gz", "mooncake"),
}
_H100, _A10G, _LONG_H100 = "llama-3-8b-h100", "llama-3-8b-a10g", "llama-3.1-8b-h100"
# azure_code comes in bursts with empty minutes between: a slice from its beginning would hold little but silence. One
# H100 is the least there is and serves several times a trace's rate, so its slices are played faster, lest a few
# requests be repeated many times; four times the rate of a trace need not fill it; and ten times what it serves is more
# than one process of a gateway can count, which would hide what policies do. mooncake's prompts are a dozen times as
# long, share what came before, and go to a model that takes them and caches prefixes; it fills an H100 as it came, and
# takes a gateway so long to count that it has no time for ten times what two A10Gs serve.
_SLICES = (
    ("azure_conv", _A10G, 2, 0.0, (120.0, 80.0, 60.0), 1, 1, True),
    ("azure_conv", _H100, 1, 0.0, (80.0, 64.0, 48.0), 4, 2, False),
    ("azure_code", _A10G, 4, 1332.0, (120.0, 80.0, 60.0), 1, 1, True),
    ("azure_code", _H100, 1, 1332.0, (80.0, 64.0, 48.0), 4, 1, False),
    ("mooncake", _A10G, 2, 0.0, (80.0, 60.0, 48.0), 1, 1, False),
    ("mooncake", _LONG_H100, 1, 0.0, (150.0, 120.0, 80.0), 1, 1, False),
)
"""Trace, replica, how many, beginning, seconds under each of `CEILINGS`, hurry, overlay, gateway's time."""
CASES = tuple(
    Case(trace, replica, count, begin, seconds[place], hurry, overlay, timed, ceiling)
    for place, ceiling in enumerate(CEILINGS)
    for trace, replica, count, begin, seconds, hurry, overlay, timed in _SLICES
)
"""Every case, all slices under one ceiling rule after the other."""


def data_folder() -> Path:
    """Return where the traces are: `TEST_DATA`, or `../shared/data` beside the repository."""
    return Path(os.environ.get("TEST_DATA", ROOT.parent / "shared" / "data"))


def traffic(case: Case, rate: float) -> Iterator[TracedRequest]:
    """Yield the requests of a case at a factor on the rate at which its slice came; the same at every call."""
    rng = Random("goodput/scale")  # noqa: S311 - traffic is made up, nothing is kept secret
    played = in_time(with_ceilings(sliced(case), case.ceiling), case.hurry)
    return in_rate(played, rate / case.hurry, rng, case.offered_seconds)


def sliced(case: Case) -> tuple[TracedRequest, ...]:
    """Return the requests of a case's slice as the trace holds them, the first second of the slice at 0."""
    return _sliced(case.trace, case.begin_seconds, case.seconds)


@cache
def _sliced(trace: str, begin_seconds: float, seconds: float) -> tuple[TracedRequest, ...]:
    told = TRACES[trace]
    with gzip.open(data_folder() / "traces" / told.file) as file:
        pieces = iter(partial(file.read, 1 << 18), b"")
        reading = Reading(Random("goodput/trace"))  # noqa: S311 - as above
        requests = format_named(told.format_name).read(pieces, reading)
        later = dropwhile(lambda one: one.at_seconds < begin_seconds, requests)
        inside = takewhile(lambda one: one.at_seconds < begin_seconds + seconds, later)
        return tuple(replace(one, at_seconds=one.at_seconds - begin_seconds) for one in inside)
