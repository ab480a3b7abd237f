"""Signals of an incident as a test states them: a level before, a level from its beginning on, and some noise."""

from collections.abc import Mapping
from random import Random

from llmshed.diagnosis.facts import Facts
from llmshed.diagnosis.track import Track

STEP_SECONDS = 15.0
SINCE = 3600.0
UNTIL = 7200.0
BEGINS = 5400.0
"""When what is staged begins: in the middle of the window."""

CALM: Mapping[str, float] = {
    "interactive_arrivals": 20.0,
    "bulk_arrivals": 1.0,
    "interactive_input": 12_000.0,
    "bulk_input": 3000.0,
    "interactive_input_p95": 1000.0,
    "interactive_ceiling_p95": 512.0,
    "interactive_share": 0.95,
    "amplification": 1.0,
    "interactive_refused": 0.0,
    "bulk_refused": 0.0,
    "refused_for_counting": 0.0,
    "counting_p95": 0.003,
    "miscounted": 0.0,
    "oldest_age": 0.02,
    "interactive_depth": 0.0,
    "bulk_depth": 1.0,
    "queued_prefill": 0.0,
    "ttft_p95": 0.3,
    "tpot_p95": 0.03,
    "missed": 0.0,
    "missed_requests": 0.0,
    "lent": 0.5,
    "seated": 0.3,
    "replicas_up": 1.0,
    "budget_factor": 1.0,
    "stalls": 0.0,
    "kv_signals": 0.0,
    "profile_mismatch": 0.0,
    "upstream_errors": 0.0,
    "bulk_prefill": 0.05,
    "engine_waiting": 0.0,
    "engine_running": 40.0,
    "kv_used": 0.5,
    "preemptions": 0.0,
    "generated": 900.0,
    "gpu": 0.7,
}
"""A busy system that is well."""
EXACT = {"replicas_up", "budget_factor", "profile_mismatch", "miscounted", "stalls", "kv_signals", "stale_rungs"}
"""What is counted, without noise."""
SUFFERING = {"missed": 0.4, "missed_requests": 300.0, "interactive_refused": 6.0, "oldest_age": 0.8, "ttft_p95": 1.9}
"""What any overload shows."""


def staged(
    changed: Mapping[str, float],
    *,
    absent: tuple[str, ...] = (),
    begins: Mapping[str, float] | None = None,
    seed: int = 1,
) -> Facts:
    """Return facts in which some signals change at `BEGINS`, or at times of their own, with noise of 2 %."""
    source = Random(seed)  # noqa: S311 - a seeded series, no secret
    steps = int(UNTIL / STEP_SECONDS) + 1
    tracks = {}
    for name in {**CALM, **changed}:
        if name in absent:
            continue
        before = CALM.get(name, 0.0)
        after, at = changed.get(name, before), (begins or {}).get(name, BEGINS)
        levels = [after if step * STEP_SECONDS >= at else before for step in range(steps)]
        noise = 0.0 if name in EXACT else 0.02
        tracks[name] = Track(0.0, STEP_SECONDS, tuple(level * (1 + source.gauss(0, noise)) for level in levels))
    return Facts(tracks, SINCE, UNTIL, dict.fromkeys(absent, "no such series"))
