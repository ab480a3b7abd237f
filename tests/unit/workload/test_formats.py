"""The table of trace formats: each file is recognised by its first line, and what is none is told."""

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.traces import seeded, unpacked
from llmshed.errors import ExitCode, TraceError
from llmshed.workload.formats import FORMATS, format_named, sniff
from llmshed.workload.readers.lines import LONGEST_BEGINNING_BYTES
from llmshed.workload.readers.reading import Reading


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("traces/azure_code_2023.csv.gz", "azure"),
        ("traces/azure_conv_2023_first40min.csv.gz", "azure"),
        ("traces/mooncake_conversation_first40min.jsonl.gz", "mooncake"),
        ("traces/arena_fcfs_a10g.csv.gz", "arena"),
        ("traces/servegen_deepseek-r1_rates.csv.gz", "servegen"),
    ],
)
def test_a_published_file_is_recognised_and_read(data_dir: Path, file: str, name: str) -> None:
    path = data_dir / file
    found = sniff(unpacked(path))
    assert found.name == name
    companion = None
    if found.companion:
        companion = gzip.open(path.with_name(path.name.replace(*found.companion)))  # noqa: SIM115 - closed below
    try:
        reading = Reading(seeded(), companion=companion)
        requests = list(itertools.islice(found.read(unpacked(path), reading), 1000))
    finally:
        if companion:
            companion.close()
    assert len(requests) == 1000
    assert all(one.at_seconds <= other.at_seconds for one, other in itertools.pairwise(requests))


@pytest.mark.parametrize("file", ["vllm_v0_idle.prom", "sglang_overloaded.prom"])
def test_a_scrape_is_recognised(data_dir: Path, file: str) -> None:
    assert sniff([(data_dir / "metrics" / file).read_bytes()]).name == "prometheus"


@pytest.mark.parametrize(
    ("first_line", "name"),
    [
        ("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type", "burstgpt"),
        ("Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type", "burstgpt"),
        ('{ "status": "success", "data": {}}', "prometheus-range"),
        ("\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\r", "azure"),
        ("\r\n\n  TIMESTAMP,ContextTokens,GeneratedTokens", "azure"),
        ('"TIMESTAMP","ContextTokens","GeneratedTokens"', "azure"),
        ('{"hash_ids":[0],"output_length":1,"input_length":1,"timestamp":0}', "mooncake"),
    ],
)
def test_a_first_line_names_its_format(first_line: str, name: str) -> None:
    assert sniff([first_line.encode() + b"\nmore"]).name == name


@pytest.mark.parametrize("first_line", ["a,b,c", "[]", "{}", "null", '{"a":', "\x00", "\x7fELF\x02", '"open', "é" * 99])
def test_what_begins_like_no_trace_is_told_with_all_that_are_accepted(first_line: str) -> None:
    with pytest.raises(TraceError, match=r"line 1: begins with .*as no known trace does") as caught:
        sniff([first_line.encode()])
    assert all(one.name in str(caught.value) and one.begins in str(caught.value) for one in FORMATS)
    assert caught.value.exit_code is ExitCode.BAD_DATA


@pytest.mark.parametrize("content", [b"", b"\n \r\n\t", b"\xef\xbb\xbf"])
def test_an_empty_trace_is_told(content: bytes) -> None:
    with pytest.raises(TraceError, match="the trace is empty"):
        sniff([content])


def test_an_endless_first_line_is_not_read_to_its_end() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 4096
            yield b"x" * 4096

    with pytest.raises(TraceError, match="begins with"):
        sniff(endless())
    assert taken == LONGEST_BEGINNING_BYTES


def test_formats_have_names_of_their_own_and_are_found_by_them() -> None:
    assert [format_named(one.name) for one in FORMATS] == list(FORMATS)
    assert len({one.name for one in FORMATS}) == len(FORMATS)


def test_the_page_on_workloads_has_a_row_for_each(repository: Path) -> None:
    rows = [
        line for line in (repository / "docs" / "workloads.md").read_text("utf-8").splitlines() if line.startswith("|")
    ]
    for one in FORMATS:
        (row,) = [row for row in rows if row.startswith(f"| `{one.name}` |")]
        assert f"| {one.title} | {one.begins} |" in row


def test_an_unknown_name_is_told_with_those_that_are_known() -> None:
    with pytest.raises(TraceError, match="no trace format 'azur'; accepted are azure, mooncake, arena"):
        format_named("azur")


def test_a_trace_without_requests_is_told_with_what_was_skipped() -> None:
    text = b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,0,5\n"
    with pytest.raises(TraceError, match="holds no request; skipped: 1 rows with no input tokens"):
        list(format_named("azure").read([text], Reading(seeded())))
