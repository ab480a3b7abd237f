"""What a decision log says of each lane, in the figures that a simulated run has too.

Both sides count the same: a try that came before admission is one arrival; refused are those that found no room, in
the gate or in the engine; a first token is timed from the arrival of its try and counts if its answer was finished;
output counts up to the last arrival, that of answers still running up to there included.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from llmshed.admission.request import Lane
from llmshed.whatif.report import RunReport, Slice
from llmshed.whatif.service import ENGINE_FAILED
from llmshed.workload.logged import LoggedRequest
from llmshed.workload.sketch import QuantileSketch

TTFT_SHARE = 0.95
_SAME_INSTANT_SECONDS = 1e-6
"""What two ways of taking differences of wall-clock readings may differ by."""


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """One lane in the figures that are compared.

    Args:
        tries: requests that came before admission, each try for itself; at least 1.
        refused_share: share of them that was refused.
        first_tokens: finished answers whose first token was timed.
        ttft_p95_seconds: 95th percentile of those times, to 1 %; None without any.
        output_tokens_per_second: output up to the last arrival.
    """

    tries: int
    refused_share: float
    first_tokens: int
    ttft_p95_seconds: float | None
    output_tokens_per_second: float


@dataclass(frozen=True, slots=True)
class LoggedFigures:
    """What a log says.

    Args:
        seconds: first to last arrival, to which rates refer; more than 0.
        lanes: lanes that had requests.
        config_versions: configurations that requests were decided under, with how many were.
        replicas: replicas that are named.
    """

    seconds: float
    lanes: Mapping[Lane, LaneFigures]
    config_versions: Mapping[str, int]
    replicas: frozenset[str]


@dataclass(slots=True)
class _LaneTally:
    tries: int = 0
    refused: int = 0
    output_tokens: float = 0.0
    first_tokens: QuantileSketch = field(default_factory=QuantileSketch)

    def add(self, request: LoggedRequest, left_seconds: float) -> None:
        self.tries += 1
        self.refused += request.was_refused
        self.output_tokens += request.output_tokens_by(left_seconds)
        if request.first_sign_seconds is not None:
            self.first_tokens.add(request.first_sign_seconds)

    def figures(self, seconds: float) -> LaneFigures:
        return LaneFigures(
            tries=self.tries,
            refused_share=self.refused / self.tries,
            first_tokens=self.first_tokens.count,
            ttft_p95_seconds=self.first_tokens.quantile(TTFT_SHARE),
            output_tokens_per_second=self.output_tokens / seconds,
        )


def logged_figures(tries: Iterable[LoggedRequest], seconds: float, part_seconds: float = inf) -> LoggedFigures:
    """Return what a log, or its first part, says.

    Args:
        tries: every try in order of arrival.
        seconds: from the first arrival to the last of a new request, to which rates refer; more than 0. Only retries
            may come later.
        part_seconds: tries that come later after the first are left out.

    Raises:
        ValueError: `seconds` is not more than 0.
    """
    if not seconds > 0:
        raise ValueError(f"rates refer to a duration of more than 0 s, not {seconds:g} s")
    lanes: dict[Lane, _LaneTally] = {}
    versions: Counter[str] = Counter()
    replicas: set[str] = set()
    began: float | None = None
    for request in tries:
        began = request.time_seconds if began is None else began
        after = request.time_seconds - began
        if after > part_seconds + _SAME_INSTANT_SECONDS:
            break
        lanes.setdefault(request.lane, _LaneTally()).add(request, max(seconds - after, 0.0))
        if request.config_version is not None:
            versions[request.config_version] += 1
        if request.replica is not None:
            replicas.add(request.replica)
    return LoggedFigures(
        seconds,
        {lane: lanes[lane].figures(seconds) for lane in Lane if lane in lanes},
        dict(versions.most_common()),
        frozenset(replicas),
    )


def simulated_figures(report: RunReport) -> dict[Lane, LaneFigures]:
    """Return the same figures of a run."""
    return {Lane(name): _of_slice(part) for name, part in report.lanes.items()}


def _of_slice(part: Slice) -> LaneFigures:
    tries = part.arrived + part.retries
    refused = sum(count for reason, count in part.refusals.items() if reason != ENGINE_FAILED)
    return LaneFigures(
        tries=tries,
        refused_share=refused / tries,
        first_tokens=part.try_ttft_seconds.count,
        ttft_p95_seconds=part.try_ttft_seconds.p95,
        output_tokens_per_second=part.throughput_output_tokens_per_second,
    )
