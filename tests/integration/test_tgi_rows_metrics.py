"""TGI's metrics and headers: when each appears, what it counts, and by which labels and buckets.

Names, types, labels and buckets come from the table that was read from TGI's source; each row's id is the metric and
what its source says of it.
"""

import json
from collections.abc import AsyncIterator, Sequence
from math import inf
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from fakes.simulated import Site, simulated
from fakes.tgi_calls import native, running, samples

NEVER_SHOWN = {"tgi_batch_max_total_tokens", "tgi_batch_total_tokens"}
LABELS = {
    "tgi_request_failure": "err",
    "tgi_batch_concat": "reason",
    "tgi_batch_concat_duration": "method",
    "tgi_batch_inference_count": "method",
    "tgi_batch_inference_success": "method",
    "tgi_batch_inference_failure": "method",
    "tgi_batch_inference_duration": "method",
    "tgi_batch_forward_duration": "method",
    "tgi_batch_decode_duration": "method",
    "tgi_batch_filter_duration": "method",
}


@pytest.fixture
def spec(data_dir: Path) -> Any:
    return json.loads((data_dir / "metrics" / "tgi_metric_spec.json").read_text("utf-8"))


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with simulated() as running:
        yield running


# --- when they appear


async def test_nothing_is_shown_before_its_first_use(site: Site) -> None:
    for path in ("/health", "/info", "/v1/models", "/metrics", "/nope"):
        await site.get(path)
    await site.post("/tokenize", {"inputs": "x"})
    await site.post("/generate", b"{")
    answer = await site.get("/metrics")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


async def test_everything_that_the_source_records_is_shown_after_use(site: Site, spec: Any) -> None:
    """One of each kind: a success, a join, a failed step, a refusal."""
    async with running(site):
        await native(site)
    await site.post("/_simulate/faults", {"fail_after_events": 1, "times": 1})
    await native(site, max_new_tokens=6000)
    text = (await site.get("/metrics")).body.decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    expected = {name: kind for name, (kind, _, _) in spec["metrics"].items() if name not in NEVER_SHOWN}
    assert {name: family.type for name, family in families.items()} == expected
    assert not any(name in text for name in NEVER_SHOWN)
    for name, (_, _, description) in spec["metrics"].items():
        if name not in NEVER_SHOWN:
            assert (f"# HELP {name} {description}\n" in text) == (description is not None)
            assert f"# TYPE {name} {expected[name]}\n" in text


async def test_each_series_has_the_label_of_the_source_and_no_other(site: Site, spec: Any) -> None:
    async with running(site):
        await native(site)
    await native(site, "")
    await site.post("/_simulate/faults", {"fail_after_events": 1, "times": 1})
    await native(site, max_new_tokens=6000)
    text = (await site.get("/metrics")).body.decode()
    allowed = {name: dict(_label(text) for text in labels) for name, (_, labels, _) in spec["metrics"].items()}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name not in {"le", "quantile"}}
            assert set(labels) == set(allowed[family.name]) == ({LABELS[family.name]} if labels else set())
            for name, value in labels.items():
                assert value in (allowed[family.name][name] or {"prefill", "decode"})


def _label(text: str) -> tuple[str, set[str]]:
    name, _, values = text.partition(": ")
    return name, set(values.split("|")) if values else set()


@pytest.mark.parametrize("limits", [(4000, 8192), (1023, 1024)])
async def test_buckets_are_those_of_the_source_and_depend_on_the_limits(spec: Any, limits: tuple[int, int]) -> None:
    max_input_tokens, max_total_tokens = limits
    async with simulated({"max_input_tokens": max_input_tokens, "max_total_tokens": max_total_tokens}) as site:
        await native(site)
        text = (await site.get("/metrics")).body.decode()
    durations = spec["bucket_rules"]["names ending in duration"]
    linear: dict[str, Sequence[float]] = {
        "tgi_request_input_length": [max_input_tokens / 100 * step for step in range(1, 101)],
        "tgi_request_generated_tokens": [max_total_tokens / 100 * step for step in range(1, 101)],
        "tgi_request_max_new_tokens": [max_total_tokens / 100 * step for step in range(1, 101)],
        "tgi_batch_next_size": list(range(1, 1025)),
    }
    checked = 0
    for family in text_string_to_metric_families(text):
        if family.type == "histogram":
            edges = [sample.labels["le"] for sample in family.samples if sample.name.endswith("_bucket")]
            series = len({sample.labels.get("method") for sample in family.samples})
            expected = linear.get(family.name, durations)
            assert edges[-1] == "+Inf"
            assert [float(edge) for edge in edges] == ([*expected, inf]) * series
            checked += 1
    assert checked == 13


async def test_speculated_tokens_are_a_summary_with_the_exporter_s_quantiles(site: Site) -> None:
    await native(site)
    lines = (await site.get("/metrics")).body.decode().splitlines()
    told = [line for line in lines if line.startswith("tgi_request_skipped_tokens")]
    assert told == [
        *(f'tgi_request_skipped_tokens{{quantile="{q}"}} 0' for q in ("0", "0.5", "0.9", "0.95", "0.99", "0.999", "1")),
        "tgi_request_skipped_tokens_sum 0",
        "tgi_request_skipped_tokens_count 4",
    ]


async def test_tokens_that_were_guessed_right_are_observed_once_a_step() -> None:
    async with simulated({"speculate": 2, "accepted_tokens": 2, "max_batch_prefill_tokens": 8192}) as site:
        await native(site, max_new_tokens=31)
        told = await samples(site)
    # The prefill gives one token, and each of ten decodes three.
    assert told["tgi_request_skipped_tokens_count"] == 11
    assert told["tgi_request_skipped_tokens_sum"] == 20
