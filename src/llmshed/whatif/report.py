"""What one run tells: frozen figures that print as one JSON object.

Every rate is over the offered time, from 0 to the last arrival. What was served is counted inside it; whether a request
was good is known only later, so good requests count by their arrival, and the run goes on until they have ended.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = "llmshed.whatif/1"
"""Version of the object that holds one or more runs; readers refuse what they do not know."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A distribution, to within 1 % of each value; None where nothing was counted."""

    count: int
    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    most: float | None


@dataclass(frozen=True, slots=True)
class Starvation:
    """How badly the worst off fared.

    Args:
        longest_wait_seconds: longest time from a first arrival to the first token, or to the end of the run for those
            that still waited for it; None when nobody waited.
        never_served_share: share of feasible requests that never got a first token, given up ones included.
        longest_gap_seconds: longest stretch in which work waited and no first token came; None in cells, where it is
            not kept.
    """

    longest_wait_seconds: float | None
    never_served_share: float
    longest_gap_seconds: float | None


@dataclass(frozen=True, slots=True)
class Slice:
    """The requests of one lane, class or quartile, or of all.

    Every arrived request is exactly one of infeasible, finished, failed, given up and unfinished. An infeasible one is
    offered to the gate all the same; beside its own count only throughput, refusals and retries count it.

    Args:
        arrived: requests of the trace, however often each was tried.
        infeasible: those that an idle replica could not serve within the objectives.
        finished: those whose answer came to its end.
        failed: those that an engine lost, or refused by itself, and that were not tried again.
        given_up: those that were refused and not tried again.
        unfinished: those that had no end when the run ended.
        good: finished ones that met their objectives, counted from the first try.
        attainment: good / feasible; refused ones stay in the denominator. None when nothing feasible arrived.
        goodput_requests_per_second: good requests.
        goodput_tokens_per_second: input and output tokens of good requests.
        goodput_output_tokens_per_second: output tokens of good requests.
        throughput_requests_per_second: requests that finished.
        throughput_input_tokens_per_second: input tokens of those that got their first token.
        throughput_output_tokens_per_second: output tokens produced, for whomever.
        offered_tokens_per_second: input and output tokens that feasible requests would need.
        good_tokens_share: good tokens / offered tokens; None when nothing was offered.
        ttft_seconds: of each finished request, first arrival to first token, as the user sees it; for an answer that is
            not a stream, to its end.
        try_ttft_seconds: the same from the arrival of the try that was served.
        tpot_seconds: mean time per output token after the first, of each finished request with two or more.
        gate_wait_seconds: time that dispatched tries spent in the gateway before, its own work included.
        refusals: tries that were not served, by reason; `engine_overloaded`, `engine_refused` and `engine_failed` are
            the engine's own.
        retries: tries beyond the first.
        starvation: how the worst off fared.
    """

    arrived: int
    infeasible: int
    finished: int
    failed: int
    given_up: int
    unfinished: int
    good: int
    attainment: float | None
    goodput_requests_per_second: float
    goodput_tokens_per_second: float
    goodput_output_tokens_per_second: float
    throughput_requests_per_second: float
    throughput_input_tokens_per_second: float
    throughput_output_tokens_per_second: float
    offered_tokens_per_second: float
    good_tokens_share: float | None
    ttft_seconds: Quantiles
    try_ttft_seconds: Quantiles
    tpot_seconds: Quantiles
    gate_wait_seconds: Quantiles
    refusals: Mapping[str, int]
    retries: int
    starvation: Starvation


@dataclass(frozen=True, slots=True)
class Cell:
    """One lane, class and input quartile (1 holds the shortest prompts)."""

    lane: str
    priority_class: str
    quartile: int
    slice: Slice


@dataclass(frozen=True, slots=True)
class TenantUse:
    """What one tenant asked for and got, in input and output tokens of feasible requests that finished."""

    tenant: str
    offered_tokens: int
    served_tokens: int


@dataclass(frozen=True, slots=True)
class Fairness:
    """Jain's index, 1 for equal parts and 1 / n where one has all; None without tenants.

    Args:
        jain_served_tokens: over the tokens that each tenant got.
        jain_served_share: over the share of its own demand that each tenant got.
        tenants: the tenants, in the order in which they came; those beyond a bound are one, named `(others)`, which
            the indices leave out.
    """

    jain_served_tokens: float | None
    jain_served_share: float | None
    tenants: tuple[TenantUse, ...]


@dataclass(frozen=True, slots=True)
class ReplicaUse:
    """One replica within the offered time.

    Args:
        name: the replica.
        dispatched: requests that were sent to it.
        refused: requests that its engine refused by itself.
        busy_share: share of the time in which a step ran.
        prefill_share: share of the time in which a step with prefill ran.
        kv_held_share: mean share of the KV cache that was held.
        mean_sequences: mean of the running sequences.
        mean_queued: mean of the sequences that waited in the engine.
        preemptions: sequences that lost their KV to others.
        preemptions_per_minute: the same as a rate.
    """

    name: str
    dispatched: int
    refused: int
    busy_share: float
    prefill_share: float
    kv_held_share: float
    mean_sequences: float
    mean_queued: float
    preemptions: int
    preemptions_per_minute: float


@dataclass(frozen=True, slots=True)
class LedgerTruth:
    """What the gate believed against what the engines held, looked at every few seconds.

    Args:
        looks: how often was looked.
        only_in_gate: requests that the gate held to be dispatched and no engine had, over all looks.
        only_in_engine: requests that an engine had and the gate did not hold to be dispatched there, likewise.
        looks_above_reserved: looks at which an engine held more KV than the gate had reserved there, over all replicas.
        most_above_reserved_tokens: by how much at most.
        mean_reserved_tokens: what the gate had reserved on all replicas together, in the mean.
        mean_held_tokens: KV that the engines held together, in the mean.
        broken_invariants: sentences of `check()` of the gate, the engines and the count of requests; the first few.
        broken_invariants_count: how many there were.
    """

    looks: int
    only_in_gate: int
    only_in_engine: int
    looks_above_reserved: int
    most_above_reserved_tokens: int
    mean_reserved_tokens: float
    mean_held_tokens: float
    broken_invariants: tuple[str, ...]
    broken_invariants_count: int


@dataclass(frozen=True, slots=True)
class PoolOnLadder:
    """How one pool stood on its ladder.

    Args:
        pool: its name.
        ladder: label of the ladder.
        seconds_on_rung: time with that many rungs in force, 0 for none first, to the end of the run.
        climbs: steps up.
    """

    pool: str
    ladder: str
    seconds_on_rung: tuple[float, ...]
    climbs: int


@dataclass(frozen=True, slots=True)
class LadderUse:
    """What ladders did in a run; goodput counts as it does in `Slice`, once with and once without changed answers.

    Args:
        pools: the pools that have a ladder.
        refused: tries that a rung refused or sent out of the queue, by the rung's name.
        degraded: feasible requests that finished with an answer which a rung changed.
        good_degraded: those of them that met their objectives.
        goodput_undegraded_requests_per_second: good requests whose answers no rung changed.
        goodput_degraded_requests_per_second: good requests whose answers one did.
    """

    pools: tuple[PoolOnLadder, ...]
    refused: Mapping[str, int]
    degraded: int
    good_degraded: int
    goodput_undegraded_requests_per_second: float
    goodput_degraded_requests_per_second: float


@dataclass(frozen=True, slots=True)
class TimePoint:
    """How things stood at one instant; counts are totals since the beginning.

    Args:
        at_seconds: the instant.
        arrived: requests that had arrived.
        refused: tries that had been refused.
        good: requests that had ended well.
        waiting: tries that stood before the gate or in its queue.
        queued: sequences that waited in the engines.
        running: sequences that ran.
        kv_held_share: share of all KV that was held.
    """

    at_seconds: float
    arrived: int
    refused: int
    good: int
    waiting: int
    queued: int
    running: int
    kv_held_share: float


@dataclass(frozen=True, slots=True)
class RunReport:
    """What one run gives.

    Args:
        offered_seconds: time from 0 to the last arrival, to which rates refer.
        ended_at_seconds: when the run ended.
        drained: whether every request had its end by then.
        requests: requests of the trace.
        imputed_share: share of them whose true length is a guess.
        quartile_edges: input tokens up to which a prompt belongs to quartile 1, 2 and 3.
        turns: turns of the loop, as a measure of the work done.
        total: all requests.
        lanes: by lane, those that arrived only.
        classes: by priority class, likewise.
        quartiles: by input quartile, always four.
        cells: by all three, those that arrived only.
        fairness: between tenants.
        gateway_busy_share: share of the offered time in which the gateway's one process worked; near 1 it is what holds
            requests up.
        replicas: in the order in which they came up.
        ledger: the gate's ledger against the truth.
        timeline: at even steps while there is something to look at, at most a few hundred.
        ladders: what ladders did; None where no pool has one.
    """

    offered_seconds: float
    ended_at_seconds: float
    drained: bool
    requests: int
    imputed_share: float
    quartile_edges: tuple[int, int, int]
    turns: int
    total: Slice
    lanes: Mapping[str, Slice]
    classes: Mapping[str, Slice]
    quartiles: tuple[Slice, ...]
    cells: tuple[Cell, ...]
    fairness: Fairness
    gateway_busy_share: float
    replicas: tuple[ReplicaUse, ...]
    ledger: LedgerTruth
    timeline: tuple[TimePoint, ...]
    ladders: LadderUse | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as objects, lists, texts and numbers, ready for JSON; equal runs give equal bytes."""
        return asdict(self)
