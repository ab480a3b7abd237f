"""What clients in environments of their own do when a running gateway refuses or fails them, row by row."""

import asyncio
from pathlib import Path

import pytest

from fakes.clients import Environment, Job
from fakes.clients_running import broken_streams, cells_of, served, wrong
from fakes.clients_states import STATES
from fakes.clients_table import CLIENTS, HERE, LITELLM
from fakes.counting_spy import CountingSpy
from fakes.house import house
from fakes.seats import held, small_house

ENVIRONMENTS = sorted({environment for row in CLIENTS for environment in row.environments} - {HERE}, key=str)

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("environment", [HERE, *ENVIRONMENTS], ids=lambda environment: environment.name)
async def test_clients_do_what_the_table_says(environment: Environment, tmp_path: Path) -> None:
    cells = await cells_of(environment, STATES, tmp_path)
    assert wrong(cells) == []
    assert cells


@pytest.mark.parametrize("environment", [HERE, *ENVIRONMENTS], ids=lambda environment: environment.name)
async def test_clients_are_served_where_there_is_room(environment: Environment) -> None:
    reports = await served(environment)
    assert reports
    assert [report for report in reports if not report.text] == []


@pytest.mark.parametrize("environment", [HERE, *ENVIRONMENTS], ids=lambda environment: environment.name)
async def test_no_client_takes_a_stream_for_complete_whose_gateway_was_killed(
    environment: Environment, tmp_path: Path
) -> None:
    reports = await broken_streams(environment, tmp_path)
    assert reports
    assert [report for report in reports if report.raised is None] == []


async def test_litellm_has_a_413_that_it_repeats_counted_once() -> None:
    async with house("lanes.bulk.max_input_tokens = 5\nlanes.interactive.max_input_tokens = 4") as gate:
        spy = CountingSpy(gate)
        with LITELLM.client() as client:
            job = Job("again", "litellm_chat", gate.data, prompt="Tell me of the sea.", options={"num_retries": 2})
            (report,) = await asyncio.to_thread(client.ask, [job])
        page = (await gate.ask("GET", "/metrics", admin=True)).body.decode()
        lines = list(gate.decisions)
    assert "reason=lane_limit" in report.says
    assert [(line["status"], line["arrival"]) for line in lines] == [
        (413, "first"),
        (413, "unchanged_413"),
        (413, "unchanged_413"),
    ]
    assert spy.calls == 1
    assert 'llmshed_client_retries_total{kind="unchanged_413",lane="overflow"} 2.0' in page


async def test_a_group_of_deployments_for_each_lane_keeps_bulk_from_taking_the_model_from_interactive_callers() -> None:
    ways = {
        "one": {"bulk": "chat", "interactive": "chat"},
        "apart": {"bulk": "chat-bulk", "interactive": "chat-interactive"},
    }
    async with small_house("", "gross_ceiling_tokens = 8_200\n") as gate, held(gate):
        with LITELLM.client() as client:
            jobs = [Job(name, "litellm_router", gate.data, options=groups) for name, groups in ways.items()]
            together, separate = await asyncio.to_thread(client.ask, jobs)
        met = [(line["request_id"], line["status"]) for line in gate.decisions if line["request_id"] in ways]
    assert together.raised == "RouterRateLimitError", together
    assert "No deployments available" in together.says
    assert separate.text, separate
    assert sorted(met) == [("apart", 200), ("apart", 429), ("apart", 429), ("one", 429), ("one", 429)]
