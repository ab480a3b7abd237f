"""The metrics against the table that was read from TGI's source."""

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from llmshed.emulator.decimals import decimal_text
from llmshed.emulator.metric_table import TABLE, Kind, edges_of
from llmshed.emulator.metrics import MOST_SAMPLES, TgiMetrics
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import JoinReason, StepKind, StepsEnded


@pytest.fixture
def spec(data_dir: Path) -> Any:
    return json.loads((data_dir / "metrics" / "tgi_metric_spec.json").read_text("utf-8"))


def test_names_types_and_help_texts_are_those_of_the_source(spec: Any) -> None:
    told = {name: (row.kind.value, row.description) for name, row in TABLE.items()}
    source = {name: (kind, text) for name, (kind, _, text) in spec["metrics"].items()}
    # Set before a recorder is there, so that it is never shown.
    del source["tgi_batch_max_total_tokens"]
    assert told == source


def test_versions_before_2_3_have_no_help_texts() -> None:
    metrics = TgiMetrics(ReplicaParameters(version="2.2.0", max_batch_prefill_tokens=8192))
    metrics.count("tgi_request_count")
    assert metrics.render() == "# TYPE tgi_request_count counter\ntgi_request_count 1\n\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (3.0, "3"),
        (0.5, "0.5"),
        (0.00004, "0.00004"),
        (1.5e-7, "0.00000015"),
        (0.00015000000000000001, "0.00015000000000000001"),
        (145.61096060497135, "145.61096060497135"),
        (1e22, "10000000000000000000000"),
    ],
)
def test_numbers_have_no_exponent(value: float, text: str) -> None:
    assert decimal_text(value) == text


def test_a_sum_of_very_short_times_is_written_out() -> None:
    metrics = TgiMetrics(ReplicaParameters())
    metrics.observe("tgi_request_queue_duration", 0.000042)
    assert "tgi_request_queue_duration_sum 0.000042\n" in metrics.render()


def test_durations_have_the_edges_of_the_source(spec: Any) -> None:
    expected = tuple(spec["bucket_rules"]["names ending in duration"])
    for name, row in TABLE.items():
        if row.kind is Kind.HISTOGRAM and name.endswith("duration"):
            assert edges_of(name, 4095, 8192) == expected


def test_lengths_have_edges_that_depend_on_the_limits() -> None:
    assert edges_of("tgi_request_input_length", 4000, 8192)[:3] == (40, 80, 120)
    assert edges_of("tgi_request_input_length", 4000, 8192)[-1] == 4000
    assert len(edges_of("tgi_request_generated_tokens", 4000, 8192)) == 100
    assert edges_of("tgi_request_max_new_tokens", 4000, 8192)[-1] == 8192
    assert edges_of("tgi_batch_next_size", 1, 2) == tuple(range(1, 1025))


def test_a_metric_appears_once_it_is_used() -> None:
    metrics = TgiMetrics(ReplicaParameters())
    assert metrics.render() == ""
    metrics.count("tgi_request_count")
    assert metrics.render() == (
        "# HELP tgi_request_count Total number of requests\n# TYPE tgi_request_count counter\ntgi_request_count 1\n\n"
    )


def test_every_metric_can_be_read_by_prometheus() -> None:
    metrics = TgiMetrics(ReplicaParameters())
    for name, row in TABLE.items():
        match row.kind:
            case Kind.COUNTER:
                metrics.count(name, ("method", "prefill"))
            case Kind.GAUGE:
                metrics.put(name, 3)
            case _:
                metrics.observe(name, 0.01)
    families = {family.name: family for family in text_string_to_metric_families(metrics.render())}
    assert families.keys() == TABLE.keys()
    for name, row in TABLE.items():
        assert families[name].type == row.kind.value


def test_buckets_count_up_to_their_edge_included() -> None:
    metrics = TgiMetrics(ReplicaParameters())
    for size in (1, 2, 2, 2000):
        metrics.observe("tgi_batch_next_size", size)
    lines = metrics.render().splitlines()
    assert 'tgi_batch_next_size_bucket{le="1"} 1' in lines
    assert 'tgi_batch_next_size_bucket{le="2"} 3' in lines
    assert 'tgi_batch_next_size_bucket{le="1024"} 3' in lines
    assert 'tgi_batch_next_size_bucket{le="+Inf"} 4' in lines
    assert "tgi_batch_next_size_sum 2005" in lines
    assert "tgi_batch_next_size_count 4" in lines


def test_edges_are_written_as_the_engine_writes_them() -> None:
    metrics = TgiMetrics(ReplicaParameters())
    metrics.observe("tgi_request_duration", 1)
    lines = metrics.render().splitlines()
    assert 'tgi_request_duration_bucket{le="0.00015000000000000001"} 0' in lines
    assert 'tgi_request_duration_bucket{le="145.61096060497135"} 1' in lines


def test_a_summary_shows_its_quantiles() -> None:
    metrics = TgiMetrics(ReplicaParameters())
    for value in range(5):
        metrics.observe("tgi_request_skipped_tokens", value)
    lines = metrics.render().splitlines()
    assert 'tgi_request_skipped_tokens{quantile="0"} 0' in lines
    assert 'tgi_request_skipped_tokens{quantile="0.5"} 2' in lines
    assert 'tgi_request_skipped_tokens{quantile="1"} 4' in lines


def test_a_summary_forgets_its_oldest_values_but_counts_them() -> None:
    metrics = TgiMetrics(ReplicaParameters())
    for value in range(MOST_SAMPLES + 10):
        metrics.observe("tgi_request_skipped_tokens", value)
    lines = metrics.render().splitlines()
    assert 'tgi_request_skipped_tokens{quantile="0"} 10' in lines
    assert f"tgi_request_skipped_tokens_count {MOST_SAMPLES + 10}" in lines


def test_a_failed_call_counts_as_failure_and_has_no_duration() -> None:
    metrics = TgiMetrics(ReplicaParameters())
    metrics.steps(StepsEnded(StepKind.DECODE, 1, 0.1, 0, None, failed=True))
    text = metrics.render()
    assert 'tgi_batch_inference_failure{method="decode"} 1' in text
    assert "tgi_batch_inference_duration" not in text


def test_a_join_is_counted_with_its_reason() -> None:
    metrics = TgiMetrics(ReplicaParameters())
    metrics.steps(StepsEnded(StepKind.PREFILL, 1, 0.1, 2, JoinReason.CHUNKING, failed=False))
    text = metrics.render()
    assert 'tgi_batch_concat{reason="chunking"} 1' in text
    assert "tgi_batch_next_size_count 1" in text
    assert 'tgi_batch_inference_success{method="prefill"} 1' in text


def test_calls_told_together_are_counted_one_by_one() -> None:
    metrics = TgiMetrics(ReplicaParameters())
    metrics.steps(StepsEnded(StepKind.DECODE, 4, 0.5, 0, None, failed=False))
    text = metrics.render()
    assert 'tgi_batch_inference_count{method="decode"} 4' in text
    assert 'tgi_batch_inference_duration_count{method="decode"} 4' in text
    assert 'tgi_batch_inference_duration_sum{method="decode"} 0.5' in text
