"""A gateway before two replicas in real time, with more than they can take: its decision log is foretold.

Processes as an operator starts them; the traffic is seeded, and what becomes of it is up to the clock.
"""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from conftest import Cli
from fakes.hindcasts import MEAN_OUTPUT_TOKENS, config_text, replica_file, too_much
from fakes.programs import serve, simulate
from fakes.texts import prose
from llmshed.errors import ExitCode
from llmshed.workload.request import TracedRequest

SECONDS = 90.0
REQUESTS_PER_SECOND = 14.0
CHARACTERS_PER_TOKEN = 2.8
"""Of made-up words under the embedded tokenizer; no figure hangs on it, since the log has the counts."""


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_a_real_time_log_is_foretold_within_fifteen_percent_and_wrong_step_times_are_not(
    tmp_path: Path, cli: Cli
) -> None:
    replica = replica_file(tmp_path)
    options = ("--replica", replica, "--output-mean", str(MEAN_OUTPUT_TOKENS), "--tokenizer", "embedded")
    async with simulate(*options) as first, simulate(*options) as second:
        async with serve(tmp_path, config_text((first, second))) as served:
            await offer(served.data, too_much(SECONDS, REQUESTS_PER_SECOND))
        log = served.decisions_file
    config = served.config_file
    right = hindcast(cli, log, config, replica, ExitCode.OK)
    print(f"hindcast: off by {right['largest_difference']:.1%} ({right['largest']})")  # noqa: T201 - read with -s
    assert {row["lane"] for row in right["rows"] if row["difference"] is not None} == {"interactive", "bulk"}
    assert all(lane["refused_share"] > 0.05 for lane in right["logged"].values()), "without refusals it proves little"
    assert right["largest_difference"] < 0.15, right["rows"]
    for factor in (1.4, 0.6):
        wrong = hindcast(cli, log, config, replica_file(tmp_path, factor), ExitCode.NO_PROPOSAL)
        print(f"step times x {factor}: off by {wrong['largest_difference']:.1%} ({wrong['largest']})")  # noqa: T201
        assert wrong["largest_difference"] > 0.15


def hindcast(cli: Cli, log: Path, config: Path, replica: Path, ends_with: ExitCode) -> dict[str, Any]:
    """Return the hindcast of a log; a proposal follows it only where it may."""
    against = config.with_name("other.toml")
    against.write_text(config.read_text().replace("12000", "9000"))
    ran = cli("whatif", "--trace", log, "--replica", replica, "x2", "--config", config, "--against", against, "--json")
    assert ran.exit_code == ends_with, ran.stderr
    told = orjson.loads(ran.stdout)
    assert bool(told["differences"]) is (ends_with is ExitCode.OK)
    found: dict[str, Any] = told["hindcast"]
    return found


async def offer(url: str, traffic: list[TracedRequest]) -> None:
    """Send each request when it is due, whatever became of those before it, and read every answer to its end."""
    loop = asyncio.get_running_loop()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session, asyncio.TaskGroup() as group:
        bodies = [body(number, request) for number, request in enumerate(traffic)]
        began = loop.time()
        for request, content in zip(traffic, bodies, strict=True):
            await asyncio.sleep(max(0.0, began + request.at_seconds - loop.time()))
            group.create_task(ask(session, url, content))


def body(number: int, request: TracedRequest) -> bytes:
    text = prose(int(request.input_tokens * CHARACTERS_PER_TOKEN), seed=number)
    return orjson.dumps({"inputs": text, "parameters": {"max_new_tokens": request.asked_output_tokens}})


async def ask(session: aiohttp.ClientSession, url: str, content: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    async with session.post(f"{url}/generate_stream", data=content, headers=headers) as answer:
        await answer.read()
        assert answer.status in {200, 429}, answer.status
