"""Summaries against the statistics that were published with the data."""

import json
import math
from bisect import bisect_left
from pathlib import Path
from typing import Any

import pytest

from fakes.traces import Reader, read_file
from llmshed.workload.readers.arena import read_arena
from llmshed.workload.readers.azure import read_azure
from llmshed.workload.readers.mooncake import read_mooncake
from llmshed.workload.request import TracedRequest
from llmshed.workload.summary import LengthSummary, TraceTally, quartile_edges, summarise

FILES: list[tuple[str, Reader]] = [
    ("azure_code_2023.csv.gz", read_azure),
    ("azure_conv_2023_first40min.csv.gz", read_azure),
    ("mooncake_conversation_first40min.jsonl.gz", read_mooncake),
    ("arena_fcfs_a10g.csv.gz", read_arena),
]


def hold(told: LengthSummary, facts: dict[str, float]) -> None:
    assert told.mean == pytest.approx(facts["mean"], abs=0.06)
    for share, value in told.quantiles.items():
        # One per cent of the sketch; between ranks the facts interpolate, which is up to a token or 1 %.
        assert value == pytest.approx(facts[f"p{round(share * 100)}"], rel=0.02, abs=1.0), share


@pytest.mark.parametrize(("name", "reader"), FILES, ids=[name for name, _ in FILES])
def test_a_published_trace_has_its_published_statistics(data_dir: Path, name: str, reader: Reader) -> None:
    requests = read_file(reader, data_dir / "traces" / name)
    facts: dict[str, Any] = json.loads((data_dir / "traces" / "stats.json").read_text("utf-8"))["slices"][name]
    told = summarise(requests)
    assert told.requests == facts["requests"]
    assert told.duration_seconds == pytest.approx(facts["duration_s"], abs=0.0006)
    assert told.rate_per_second == pytest.approx(facts["arrivals_per_s"], abs=0.00006)
    assert told.interarrival_cv == pytest.approx(facts["interarrival_cv"], abs=0.0015)
    hold(told.input_tokens, facts["input_tokens"])
    hold(told.output_tokens, facts["output_tokens"])
    assert told.input_tokens.total / told.duration_seconds == pytest.approx(facts["input_tokens_per_s"], abs=0.06)
    assert told.output_tokens.total / told.duration_seconds == pytest.approx(facts["output_tokens_per_s"], abs=0.06)
    assert told.tenants == facts.get("tenants", 1)
    assert told.with_blocks == told.with_session == (told.requests if "mooncake" in name else 0)
    assert (told.imputed, told.with_ceiling, told.cut) == (0, 0, 0)


def test_quartile_edges_part_the_prompts_in_quarters(data_dir: Path) -> None:
    requests = read_file(read_azure, data_dir / "traces" / "azure_code_2023.csv.gz")
    told = summarise(requests)
    counts = [0, 0, 0, 0]
    for request in requests:
        counts[bisect_left(told.input_quartile_edges, request.input_tokens)] += 1
    assert all(count / len(requests) == pytest.approx(0.25, abs=0.015) for count in counts)
    assert quartile_edges(requests) == told.input_quartile_edges


def test_quartile_edges_are_told_without_a_summary_too() -> None:
    edges = quartile_edges(TracedRequest(0.0, input_tokens, 5) for input_tokens in range(1, 1002))
    assert list(edges) == pytest.approx([251, 501, 751], rel=0.011)
    assert quartile_edges([]) == (0, 0, 0)


def test_what_was_made_up_and_what_will_be_cut_is_counted() -> None:
    told = summarise(
        [
            TracedRequest(0.0, 10, 5, asked_output_tokens=5, tenant="a"),
            TracedRequest(1.0, 10, 5, asked_output_tokens=4, tenant="b", imputed=True),
            TracedRequest(3.0, 10, 5, session="s", tenant="a"),
        ]
    )
    assert (told.requests, told.tenants, told.imputed, told.with_ceiling, told.cut) == (3, 2, 1, 2, 1)
    assert (told.with_session, told.with_blocks) == (1, 0)
    # Gaps of 1 and 2: mean 1.5, deviation 0.5.
    assert told.interarrival_cv == pytest.approx(1 / 3)


def test_requests_pass_unchanged_while_they_are_counted() -> None:
    requests = [TracedRequest(float(number), 10, 5) for number in range(4)]
    tally = TraceTally()
    assert list(tally.passing(requests)) == requests
    assert tally.summary() == summarise(requests)
    assert tally.summary().interarrival_cv == 0.0


def test_requests_that_all_come_at_once_have_no_rate() -> None:
    told = summarise([TracedRequest(5.0, 10, 5)] * 3)
    assert (told.duration_seconds, told.rate_per_second, told.interarrival_cv) == (0.0, None, None)


def test_a_trace_without_requests_has_no_summary() -> None:
    with pytest.raises(ValueError, match="without requests"):
        summarise([])


def test_edges_are_whole_numbers_of_lengths_where_all_are_alike() -> None:
    told = summarise([TracedRequest(float(number), 100, 1) for number in range(9)])
    assert told.input_quartile_edges == (100, 100, 100)
    assert math.isclose(told.output_tokens.mean, 1.0)
