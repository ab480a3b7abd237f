"""The reader of Azure's traces, against the published files and their own statistics."""

import csv
import gzip
import json
from pathlib import Path

import pytest

from fakes.traces import read_file, read_text, seeded
from llmshed.errors import TraceError
from llmshed.workload.readers.azure import read_azure
from llmshed.workload.readers.reading import Reading

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


@pytest.mark.parametrize("name", ["azure_code_2023.csv.gz", "azure_conv_2023_first40min.csv.gz"])
def test_the_published_file_is_read_whole(data_dir: Path, name: str) -> None:
    requests = read_file(read_azure, data_dir / "traces" / name)
    facts = json.loads((data_dir / "traces" / "stats.json").read_text("utf-8"))["slices"][name]
    with gzip.open(data_dir / "traces" / name, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(requests) == facts["requests"]
    assert requests[0].at_seconds == 0.0
    assert requests[-1].at_seconds == pytest.approx(facts["duration_s"], abs=0.0006)
    assert [request.input_tokens for request in requests] == [int(row["ContextTokens"]) for row in rows]
    assert [request.true_output_tokens for request in requests] == [int(row["GeneratedTokens"]) for row in rows]
    assert not any(request.imputed or request.asked_output_tokens for request in requests)


def test_all_seven_digits_of_a_second_count() -> None:
    text = HEADER + "2023-11-16 18:17:03.9799600,10,1\n2023-11-16 18:17:03.9799601,10,1\n"
    assert [request.at_seconds for request in read_text(read_azure, text)] == [0.0, 1e-7]


@pytest.mark.parametrize(
    ("first", "second", "seconds"),
    [
        ("2023-11-16 23:59:59", "2023-11-17 00:00:01.5", 2.5),
        ("2024-02-28 12:00:00.000000+00:00", "2024-02-29 12:00:00.000000+00:00", 86_400.0),
        ("2024-05-10T00:00:00Z", "2024-05-10T01:30:00+01:00", 1800.0),
        ("1969-12-31 23:59:59.5", "1970-01-01 00:00:00.25", 0.75),
    ],
)
def test_days_fractions_and_zones_add_up(first: str, second: str, seconds: float) -> None:
    requests = read_text(read_azure, f"{HEADER}{first},10,1\n{second},10,1\n")
    assert requests[1].at_seconds == seconds


def test_columns_in_another_order_among_others_are_found() -> None:
    text = "id,GeneratedTokens,TIMESTAMP,ContextTokens\n7,5,2023-11-16 18:17:03,100\n"
    (request,) = read_text(read_azure, text)
    assert (request.input_tokens, request.true_output_tokens) == (100, 5)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("2023-11-16 18:17:03,-5,1", "line 2: ContextTokens is '-5'; a whole number from 0 to 10000000"),
        ("2023-11-16 18:17:03,nan,1", "ContextTokens is 'nan'"),
        ("2023-11-16 18:17:03,1e3,1", "ContextTokens is '1e3'"),
        ("2023-11-16 18:17:03,１２,1", "ContextTokens is '１２'"),  # noqa: RUF001 - digits that int() takes
        ("2023-11-16 18:17:03,1_0,1", "ContextTokens is '1_0'"),
        ("2023-11-16 18:17:03,10,99999999", "GeneratedTokens is '99999999'"),
        ("2023-11-16 18:17:03,10,", "GeneratedTokens is ''"),
        ("2023-02-31 18:17:03,10,1", "TIMESTAMP is '2023-02-31 18:17:03'"),
        ("2023-11-16 25:17:03,10,1", "TIMESTAMP"),
        ("16/11/2023 18:17,10,1", "as 2023-11-16 18:17:03.9799600 is accepted"),
        ("1700158623,10,1", "TIMESTAMP"),
        ("2023-11-16 18:17:03,10", "line 2: 2 fields; the header has 3"),
        ("2023-11-16 18:17:03,10,1,1", "4 fields"),
        ('"2023-11-16 18:17:03,10,1', "line 2: not comma-separated"),
    ],
)
def test_a_broken_row_is_told_with_its_line(row: str, told: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_text(read_azure, f"{HEADER}{row}\n")
    assert told in str(caught.value)
    assert caught.value.line == 2


def test_arrivals_that_go_back_are_told() -> None:
    text = HEADER + "2023-11-16 18:17:03,10,1\n\n2023-11-16 18:17:00.5,10,1\n"
    with pytest.raises(TraceError, match=r"line 4: arrives 2.5 s before the request above it; sort"):
        read_text(read_azure, text)


def test_a_trace_of_a_millennium_is_told() -> None:
    text = HEADER + "1023-11-16 18:17:03,10,1\n2023-11-16 18:17:03,10,1\n"
    with pytest.raises(TraceError, match=r"line 3: arrives 3.1\d+e\+10 s after the first request"):
        read_text(read_azure, text)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(TraceError, match="line 1: no column GeneratedTokens in the header"):
        read_text(read_azure, "TIMESTAMP,ContextTokens\n")


def test_a_failed_answer_gets_a_length_from_those_before_it() -> None:
    good = "2023-11-16 18:17:03,100,40\n" * 30
    reading = Reading(seeded())
    requests = read_text(read_azure, f"{HEADER}{good}2023-11-16 18:17:04,100,0\n", reading)
    assert (requests[-1].true_output_tokens, requests[-1].imputed) == (40, True)
    assert not reading.skipped
