"""Reports of virtual runs made by hand, for what compares and shows them."""

from collections.abc import Mapping
from typing import Any

from llmshed.whatif.compare import Run
from llmshed.whatif.report import (
    Cell,
    Fairness,
    LedgerTruth,
    Quantiles,
    ReplicaUse,
    RunReport,
    Slice,
    Starvation,
    TenantUse,
    TimePoint,
)

NOTHING = Quantiles(0, None, None, None, None, None, None)


def quantiles(p50: float) -> Quantiles:
    return Quantiles(1000, p50 * 1.2, p50, p50 * 2, p50 * 3, p50 * 5, p50 * 9)


def part(good: int = 900, refusals: Mapping[str, int] | None = None, **changed: Any) -> Slice:
    """Return a thousand requests of 100 seconds, of which some were good, with 250 tokens each."""
    values: dict[str, Any] = {
        "arrived": 1000,
        "infeasible": 0,
        "finished": good,
        "failed": 0,
        "given_up": 1000 - good,
        "unfinished": 0,
        "good": good,
        "attainment": good / 1000,
        "goodput_requests_per_second": good / 100,
        "goodput_tokens_per_second": good * 2.5,
        "goodput_output_tokens_per_second": good * 0.5,
        "throughput_requests_per_second": good / 100,
        "throughput_input_tokens_per_second": good * 2.0,
        "throughput_output_tokens_per_second": good * 0.5,
        "offered_tokens_per_second": 2500.0,
        "good_tokens_share": good / 1000,
        "ttft_seconds": quantiles(0.2),
        "try_ttft_seconds": quantiles(0.2),
        "tpot_seconds": quantiles(0.03),
        "gate_wait_seconds": quantiles(0.002),
        "refusals": {"token_budget_exhausted": 1000 - good} if refusals is None else refusals,
        "retries": 0,
        "starvation": Starvation(4.5, 0.1, 0.75),
    }
    return Slice(**{**values, **changed})


def unserved() -> Slice:
    """Return a part in which nothing was served and nothing was feasible."""
    return part(
        0,
        {},
        infeasible=1000,
        given_up=0,
        attainment=None,
        good_tokens_share=None,
        ttft_seconds=NOTHING,
        try_ttft_seconds=NOTHING,
        tpot_seconds=NOTHING,
        gate_wait_seconds=NOTHING,
        starvation=Starvation(None, 0.0, None),
    )


def report(total: Slice | None = None, **changed: Any) -> RunReport:
    whole = part() if total is None else total
    values: dict[str, Any] = {
        "offered_seconds": 100.0,
        "ended_at_seconds": 112.5,
        "drained": True,
        "requests": 1000,
        "imputed_share": 0.0,
        "quartile_edges": (100, 1000, 4000),
        "turns": 5000,
        "total": whole,
        "lanes": {"interactive": whole},
        "classes": {"normal": whole},
        "quartiles": (whole,) * 4,
        "cells": (Cell("interactive", "normal", 1, whole),),
        "fairness": Fairness(1.0, 1.0, (TenantUse("trace", 250_000, 225_000),)),
        "gateway_busy_share": 0.07,
        "replicas": (
            ReplicaUse("main-1", 500, 0, 0.8, 0.3, 0.6, 20.5, 0.5, 0, 0.0),
            ReplicaUse("main-2", 400, 0, 0.6, 0.2, 0.4, 18.5, 0.5, 3, 1.8),
        ),
        "ledger": LedgerTruth(20, 0, 0, 0, 0, 40_000.0, 30_000.0, (), 0),
        "timeline": (TimePoint(0.0, 0, 0, 0, 0, 0, 0, 0.0), TimePoint(100.0, 1000, 100, 880, 2, 1, 20, 0.75)),
    }
    return RunReport(**{**values, **changed})


def run(
    policy: str = "ours", scale: float = 1.0, total: Slice | None = None, configuration: str = "a.toml", **changed: Any
) -> Run:
    return Run(configuration, policy, scale, report(total, **changed))
