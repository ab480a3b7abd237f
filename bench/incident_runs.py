"""What comes of the two incidents in virtual time; `bench/incidents.py` prints it, a scenario test holds short ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from incident_traffic import Bursts, Surge, incident_clients
from staged import shipped_stage, watched_controller

from llmshed.admission.actions import Action
from llmshed.admission.events import Arrived, Event, FirstToken
from llmshed.admission.request import Lane
from llmshed.whatif.gate import Gate
from llmshed.whatif.report import LedgerTruth, RunReport
from llmshed.whatif.world import RunPlan, simulate
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

BURST_REPLICA = "llama-3.1-8b-h100"
"""Its context holds the longest prompt of a batch with its answer, which that of Llama 3 does not."""
BURST_REPLICAS = 2
SURGE_REPLICA = "llama-3-8b-a10g"
SURGE_REPLICAS = 8
RECOVERY_SECONDS = 60.0
"""How long after a surge the baseline has to be there again."""
_EDGES = (500, 1500, 4000)


class TimedGate:
    """Passes everything on to a gate, and notes when each request came and had its first token."""

    def __init__(self, gate: Gate) -> None:
        """Begin to listen."""
        self._gate = gate
        self._came: dict[int, float] = {}
        self.first_tokens: list[tuple[float, float]] = []

    def handle(self, event: Event, now: float) -> list[Action]:
        """Take one fact, as the gate does."""
        match event:
            case Arrived(request):
                self._came[request.key] = now
            case FirstToken(key):
                self.first_tokens.append((self._came.pop(key), now))
            case _:
                pass
        return self._gate.handle(event, now)

    def next_wakeup(self) -> float | None:
        """Return when the gate wants a `Tick`."""
        return self._gate.next_wakeup()

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants of the gate."""
        return self._gate.check()

    def ttft_p95_seconds(self, begin: float, end: float) -> float:
        """Return the 95th percentile of TTFT of those that came between two instants and were served."""
        waits = sorted(first - came for came, first in self.first_tokens if begin <= came < end)
        return waits[int(0.95 * (len(waits) - 1))]


@dataclass(frozen=True, slots=True)
class BurstOutcome:
    """Interactive bursts beside batches, and alone.

    Args:
        alone: the same interactive requests without any batch.
        beside: with them.
    """

    alone: RunReport
    beside: RunReport

    @property
    def slowdown(self) -> float:
        """Return the interactive TTFT p95 as a multiple of what it is alone; the time of earlier tries counts."""
        alone, beside = (_interactive_p95(one) for one in (self.alone, self.beside))
        return beside / alone

    @property
    def batch_done_share(self) -> float:
        """Return the share of the batches' requests that had their whole answer."""
        bulk = self.beside.lanes[Lane.BULK.value]
        return bulk.finished / bulk.arrived

    def lines(self) -> Iterator[str]:
        """Yield what is printed."""
        yield "| | requests | TTFT p95, s | p99, s | TPOT p95, s | done | given up | tries again |"
        yield "|---|---|---|---|---|---|---|---|"
        for name, report in (("interactive alone", self.alone), ("beside batches", self.beside)):
            yield _lane_line(name, report, Lane.INTERACTIVE)
        yield _lane_line("batches", self.beside, Lane.BULK)
        yield ""
        yield (
            f"interactive TTFT p95 {self.slowdown:.2f} times its value alone; {100 * self.batch_done_share:.1f} % of"
            f" the batches done, the last at {self.beside.ended_at_seconds:,.0f} s; {_truth(self.beside.ledger)}"
        )


@dataclass(frozen=True, slots=True)
class SurgeOutcome:
    """A surge before many replicas; all times in seconds.

    Args:
        before_p95: TTFT p95 of those that came before the surge, apart from the first `RECOVERY_SECONDS`.
        during_p95: of those that came in it and were served.
        after_p95: of those that came later than `RECOVERY_SECONDS` after it: the same requests as before it.
        report: the whole run.
    """

    before_p95: float
    during_p95: float
    after_p95: float
    report: RunReport

    def lines(self) -> Iterator[str]:
        """Yield what is printed."""
        total = self.report.total
        yield "| TTFT p95 before, s | in the surge | 60 s after it | attainment | refused | ledger |"
        yield "|---|---|---|---|---|---|"
        yield (
            f"| {self.before_p95:.3f} | {self.during_p95:.3f} | {self.after_p95:.3f} | {total.attainment or 0.0:.3f}"
            f" | {sum(total.refusals.values()):,} | {_truth(self.report.ledger)} |"
        )


def run_bursts(bursts: Bursts) -> BurstOutcome:
    """Play bursts alone and beside batches; all clients honour Retry-After."""
    return BurstOutcome(_bursts(bursts.interactive()), _bursts(bursts.both()))


def run_surge(surge: Surge, replicas: int = SURGE_REPLICAS) -> SurgeOutcome:
    """Play a surge, and look at the ledger each second; as in the incident, refused clients do not come back.

    Those that did would be part of the traffic after it, for as long as the waits that they were told.
    """
    setting = shipped_stage(SURGE_REPLICA, replicas)
    gate = TimedGate(watched_controller(setting))
    rng = Random("incidents/clients")  # noqa: S311 - draws of waits, nothing is kept secret
    report = simulate(setting, gate, surge.requests(), ClientModel.NONE, rng, RunPlan(_EDGES, look_seconds=1.0))
    over = surge.surge_ends_at
    return SurgeOutcome(
        before_p95=gate.ttft_p95_seconds(RECOVERY_SECONDS, surge.calm_seconds),
        during_p95=gate.ttft_p95_seconds(surge.calm_seconds, over),
        after_p95=gate.ttft_p95_seconds(over + RECOVERY_SECONDS, float("inf")),
        report=report,
    )


def _bursts(traffic: Iterator[TracedRequest]) -> RunReport:
    setting = shipped_stage(BURST_REPLICA, BURST_REPLICAS)
    rng = Random("incidents/clients")  # noqa: S311 - as above
    plan = RunPlan(_EDGES, drain_seconds=100_000.0)
    return simulate(setting, watched_controller(setting), traffic, incident_clients, rng, plan)


def _interactive_p95(report: RunReport) -> float:
    p95 = report.lanes[Lane.INTERACTIVE.value].ttft_seconds.p95
    if p95 is None:
        raise ValueError("no interactive request was served")
    return p95


def _lane_line(name: str, report: RunReport, lane: Lane) -> str:
    figures = report.lanes[lane.value]
    ttft, done = figures.ttft_seconds, figures.finished / figures.arrived
    return (
        f"| {name} | {figures.arrived:,} | {ttft.p95 or 0.0:.3f} | {ttft.p99 or 0.0:.3f}"
        f" | {figures.tpot_seconds.p95 or 0.0:.4f} | {100 * done:.1f} % | {figures.given_up:,} | {figures.retries:,} |"
    )


def _truth(ledger: LedgerTruth) -> str:
    unlike = ledger.only_in_gate + ledger.only_in_engine
    return f"{ledger.looks:,} looks, {unlike} requests unlike, {ledger.broken_invariants_count} broken"
