"""Traffic made from histograms, against the values that were put into them."""

import json
import statistics
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from fakes.traces import seeded
from llmshed.admission.request import Intent
from llmshed.errors import TraceError
from llmshed.workload.readers.prometheus import read_range, read_scrape
from llmshed.workload.readers.reading import Reading
from llmshed.workload.request import TracedRequest

EDGES = (16, 64, 256, 1024, 4096)


def scrape(input_name: str, output_name: str, lanes: dict[str, list[tuple[int, int]]], label: str = "lane") -> bytes:
    """Return what a program exposes that saw requests of these lengths; 0 output tokens are none."""
    registry = CollectorRegistry()
    inputs = Histogram(input_name, "help", [label], registry=registry, buckets=EDGES)
    outputs = Histogram(output_name, "help", [label], registry=registry, buckets=EDGES)
    for lane, requests in lanes.items():
        for input_tokens, output_tokens in requests:
            inputs.labels(lane).observe(input_tokens)
            if output_tokens:
                outputs.labels(lane).observe(output_tokens)
    return generate_latest(registry)


def from_scrape(text: bytes, rate: float | None = 10.0, duration: float | None = None) -> list[TracedRequest]:
    return list(read_scrape([text], Reading(seeded(51), rate_per_second=rate, duration_seconds=duration)))


def test_each_lane_keeps_its_share_its_lengths_and_its_intent() -> None:
    interactive, bulk = [(40, 100)] * 3000, [(3000, 800)] * 1000
    requests = from_scrape(
        scrape("llmshed_input_tokens", "llmshed_output_tokens", {"interactive": interactive, "bulk": bulk}),
        duration=1000.0,
    )
    by_intent = {intent: [one for one in requests if one.intent is intent] for intent in Intent}
    assert len(requests) == pytest.approx(10_000, abs=400)
    assert len(by_intent[Intent.BULK]) / len(requests) == pytest.approx(0.25, abs=0.02)
    assert {16 < one.input_tokens <= 64 for one in by_intent[Intent.INTERACTIVE]} == {True}
    assert {64 < one.true_output_tokens <= 256 for one in by_intent[Intent.INTERACTIVE]} == {True}
    assert {1024 < one.input_tokens <= 4096 for one in by_intent[Intent.BULK]} == {True}
    assert statistics.fmean(one.input_tokens for one in by_intent[Intent.BULK]) == pytest.approx(2560, rel=0.05)


@pytest.mark.parametrize("lane", ["overflow", "none"])
def test_what_was_classified_by_size_declares_nothing(lane: str) -> None:
    lanes = {lane: [(100, 0)] * 30, "interactive": [(40, 100)] * 30}
    requests = from_scrape(scrape("llmshed_input_tokens", "llmshed_output_tokens", lanes), duration=100.0)
    assert {one.intent for one in requests} == {None, Intent.INTERACTIVE}


@pytest.mark.parametrize(
    ("input_name", "output_name"),
    [
        ("tgi_request_input_length", "tgi_request_generated_tokens"),
        ("vllm:request_prompt_tokens", "vllm:request_generation_tokens"),
    ],
)
def test_histograms_of_engines_are_one_kind(input_name: str, output_name: str) -> None:
    lanes = {"a": [(40, 100)] * 50, "b": [(40, 100)] * 50}
    requests = from_scrape(scrape(input_name, output_name, lanes, label="model_name"), duration=100.0)
    assert {one.intent for one in requests} == {None}
    assert {16 < one.input_tokens <= 64 for one in requests} == {True}


def test_as_many_come_as_were_counted_unless_told_for_how_long() -> None:
    text = scrape("llmshed_input_tokens", "llmshed_output_tokens", {"interactive": [(40, 100)] * 5000})
    assert len(from_scrape(text, rate=50.0)) == pytest.approx(5000, abs=4 * 71)
    assert from_scrape(text, rate=50.0)[-1].at_seconds == pytest.approx(100.0, abs=1.0)


def test_a_scrape_without_a_rate_is_told() -> None:
    text = scrape("llmshed_input_tokens", "llmshed_output_tokens", {"interactive": [(40, 100)] * 7})
    with pytest.raises(TraceError, match=r"tells lengths and no rate; give the rate \(it counted 7 requests\)"):
        from_scrape(text, rate=None)


def test_a_scrape_of_something_else_is_told() -> None:
    with pytest.raises(TraceError, match="no requests in a pair of these histograms: llmshed_input_tokens with"):
        from_scrape(b"# TYPE up gauge\nup 1\n")


def matrix(name: str, le: str, values: list[tuple[float, float]], **labels: str) -> dict[str, Any]:
    metric = {"__name__": f"{name}_bucket", "le": le, **labels}
    return {"metric": metric, "values": [[at, str(value)] for at, value in values]}


def two_steps(**labels: str) -> list[dict[str, Any]]:
    """Ten short requests a second for 100 s, then forty long ones a second."""
    instants = (1000.0, 1100.0, 1200.0)
    counted = {
        ("llmshed_input_tokens", "64"): (0, 1000, 1000),
        ("llmshed_input_tokens", "256"): (0, 1000, 5000),
        ("llmshed_input_tokens", "+Inf"): (0, 1000, 5000),
        ("llmshed_output_tokens", "16"): (0, 900, 4000),
        ("llmshed_output_tokens", "+Inf"): (0, 900, 4000),
    }
    return [
        matrix(name, le, list(zip(instants, counts, strict=True)), lane="interactive", **labels)
        for (name, le), counts in counted.items()
    ]


def from_range(result: list[dict[str, Any]], duration: float | None = None) -> list[TracedRequest]:
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
    return list(read_range([text], Reading(seeded(52), duration_seconds=duration)))


def test_each_step_has_its_own_rate_and_lengths() -> None:
    requests = from_range(two_steps())
    early = [one for one in requests if one.at_seconds < 100]
    late = [one for one in requests if one.at_seconds >= 100]
    assert len(early) == pytest.approx(1000, abs=4 * 32)
    assert len(late) == pytest.approx(4000, abs=4 * 64)
    assert max(one.input_tokens for one in early) <= 64 < min(one.input_tokens for one in late)
    assert all(one.at_seconds <= other.at_seconds for one, other in pairwise(requests))
    assert requests[-1].at_seconds < 200
    assert {one.intent for one in requests} == {Intent.INTERACTIVE}


def test_replicas_and_gateways_add_up() -> None:
    one, two = from_range(two_steps(instance="a")), from_range(two_steps(instance="a") + two_steps(instance="b"))
    assert len(two) == pytest.approx(2 * len(one), abs=4 * 120)


def test_a_range_ends_after_the_duration_asked_for() -> None:
    assert 49 < from_range(two_steps(), duration=50.0)[-1].at_seconds < 50


def test_a_lane_of_which_nothing_was_served_gets_the_lengths_of_the_others() -> None:
    refused = [matrix("llmshed_input_tokens", le, [(1000.0, 0), (1100.0, 500)], lane="bulk") for le in ("256", "+Inf")]
    requests = from_range(two_steps() + refused)
    bulk = [one for one in requests if one.intent is Intent.BULK]
    assert len(bulk) == pytest.approx(500, abs=4 * 23)
    assert max(one.true_output_tokens for one in bulk) <= 16


def test_a_rate_beyond_reason_is_told() -> None:
    result = [
        matrix(name, le, [(1000.0, 0), (1000.001, 1e14)])
        for name in ("llmshed_input_tokens", "llmshed_output_tokens")
        for le in ("64", "+Inf")
    ]
    with pytest.raises(TraceError, match="requests a second; at most"):
        from_range(result)


def test_one_seed_gives_one_traffic() -> None:
    assert from_range(two_steps()) == from_range(two_steps())
