"""The arena trace and its measured latencies."""

import json
from pathlib import Path

import pytest

from fakes.traces import read_file, read_text, seeded, unpacked
from llmshed.errors import TraceError
from llmshed.workload.readers.arena import read_arena, read_measured
from llmshed.workload.readers.reading import Reading

NAME = "arena_fcfs_a10g.csv.gz"
HEADER = "arrival_s,tenant,prompt_len,output_len,first_token_latency_s,request_latency_s\n"


def test_the_published_latencies_stand_beside_their_requests(data_dir: Path) -> None:
    path = data_dir / "traces" / NAME
    facts = json.loads((data_dir / "traces" / "stats.json").read_text("utf-8"))["slices"][NAME]
    measured = list(read_measured(unpacked(path), Reading(seeded())))
    assert [one.request for one in measured] == read_file(read_arena, path)
    latencies = sorted(one.first_token_seconds or 0.0 for one in measured)
    for share, fact in facts["measured_first_token_latency_s"].items():
        rank = round(float(share[1:]) / 100 * (len(latencies) - 1))
        assert latencies[rank] == pytest.approx(fact, abs=0.5)
    busiest = max({one.request.tenant for one in measured}, key=[one.request.tenant for one in measured].count)
    share = sum(one.request.tenant == busiest for one in measured) / len(measured)
    assert share == pytest.approx(facts["share_of_busiest_tenant"], abs=0.00006)
    assert all((one.whole_seconds or 0) >= (one.first_token_seconds or 0) for one in measured)


def test_latencies_may_be_missing() -> None:
    (empty,) = read_measured([f"{HEADER}5.5,a,10,3,,\n".encode()], Reading(seeded()))
    (absent,) = read_measured([b"arrival_s,tenant,prompt_len,output_len\n5.5,a,10,3\n"], Reading(seeded()))
    assert empty == absent
    assert (empty.first_token_seconds, empty.whole_seconds) == (None, None)
    assert (empty.request.at_seconds, empty.request.tenant) == (0.0, "a")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("-1,a,10,3,1,2", "arrival_s is '-1'"),
        ("0,,10,3,1,2", "tenant is ''"),
        ("0,a,x,3,1,2", "prompt_len is 'x'"),
        ("0,a,10,,1,2", "output_len is ''"),
        ("0,a,10,3,nan,2", "first_token_latency_s is 'nan'"),
        ("0,a,10,3,1,-2", "request_latency_s is '-2'"),
    ],
)
def test_a_broken_row_is_told(row: str, told: str) -> None:
    with pytest.raises(TraceError, match=f"line 2: {told}"):
        read_text(read_arena, HEADER + row)
