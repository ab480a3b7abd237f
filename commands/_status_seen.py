"""What a running gateway tells of itself on its admin listener, put together for a first look."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._gateway import Gateway

LOOKED_AT = 500
"""Decisions that refusals are counted among: enough to see what happens now, and answered in some milliseconds."""
_TALLIES = frozenset(
    {
        "llmshed_build_info",
        "llmshed_replica_budget_factor",
        "llmshed_replica_signals_total",
        "llmshed_replica_signal_age_seconds",
        "llmshed_profile_match",
        "llmshed_count_mismatch_total",
    }
)
"""Metrics that tell what the state does not."""

_Sample = tuple[Mapping[str, str], float]


def status_seen(gateway: "Gateway") -> dict[str, Any]:
    """Ask a gateway for its state, its last decisions and its metrics, and return them as `llmshed.status/1`.

    Raises:
        LlmshedError: as `Gateway.get`.
    """
    state = gateway.get("/admin/state")
    decisions = gateway.get(f"/admin/decisions?n={LOOKED_AT}")["decisions"]
    samples = _samples(gateway.text("/metrics"))
    return {
        "version": next((labels["version"] for labels, _ in samples["llmshed_build_info"]), None),
        "config_version": state["config_version"],
        "ready": state["ready"],
        "not_ready": [name for name, holds in state["checks"].items() if not holds],
        "mode": state["mode"],
        "draining": state["draining"],
        "requests_in_house": state["requests_in_house"],
        "amplification": state["amplification"],
        "arrivals": state["arrivals"],
        "replicas": [_replica(replica, samples) for replica in state["replicas"]],
        "pools": [_pool(pool, samples) for pool in state["pools"]],
        "decisions": len(decisions),
        "decisions_since": decisions[-1]["time"] if decisions else None,
        "refusals": _refusals(decisions),
        "troubles": state["troubles"],
        "violations": state["violations"],
    }


def _replica(replica: Mapping[str, Any], samples: Mapping[str, Sequence[_Sample]]) -> dict[str, Any]:
    name, equation = replica["name"], replica["equation"]
    likeness = [labels for labels, holds in _of(samples["llmshed_profile_match"], "replica", name) if holds]
    signals = _of(samples["llmshed_replica_signals_total"], "replica", name)
    return {
        "name": name,
        "pool": replica["pool"],
        "up": replica["up"],
        "profile": replica["profile"],
        "reserved_tokens": equation["active_tokens"],
        "safe_budget_tokens": equation["safe_budget_tokens"],
        "active_sequences": equation["active_sequences"],
        "hard_cap_sequences": equation["hard_cap_sequences"],
        "budget_factor": _value(samples["llmshed_replica_budget_factor"], "replica", name),
        "signals": {labels["signal"]: int(times) for labels, times in signals if times},
        "signal_age_seconds": _value(samples["llmshed_replica_signal_age_seconds"], "replica", name),
        "mismatch": [labels["kind"] for labels in likeness if labels["state"] == "mismatch"],
        "unverified": [labels["kind"] for labels in likeness if labels["state"] == "unverified"],
    }


def _pool(pool: Mapping[str, Any], samples: Mapping[str, Sequence[_Sample]]) -> dict[str, Any]:
    lanes: dict[str, dict[str, float]] = {}
    for queue in pool["queues"]:
        lane = lanes.setdefault(queue["lane"], {"requests": 0, "tokens": 0})
        lane["requests"] += queue["requests"]
        lane["tokens"] += queue["tokens"]
    for name, lane in lanes.items():
        lane["oldest_age_seconds"] = pool["oldest_age_seconds"].get(name, 0.0)
    return {
        "name": pool["name"],
        "lanes": lanes,
        "count_mismatches": int(_value(samples["llmshed_count_mismatch_total"], "pool", pool["name"]) or 0),
        "ladder": pool.get("ladder"),
    }


def _refusals(decisions: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count what was refused, or evicted from a queue, by its reason; most frequent first."""
    reasons = Counter(line["reason"] for line in decisions if line["reason"] is not None)
    return dict(reasons.most_common())


def _samples(metrics: str) -> Mapping[str, list[_Sample]]:
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, list[_Sample]] = defaultdict(list)
    # The rest of a page is some thousand lines of histograms.
    lines = (line for line in metrics.splitlines() if line.partition("{")[0] in _TALLIES)
    for family in text_string_to_metric_families("\n".join(lines)):
        for sample in family.samples:
            found[sample.name].append((sample.labels, sample.value))
    return found


def _of(samples: Iterable[_Sample], label: str, name: str) -> list[_Sample]:
    return [(labels, value) for labels, value in samples if labels[label] == name]


def _value(samples: Iterable[_Sample], label: str, name: str) -> float | None:
    return next((value for _, value in _of(samples, label, name)), None)
