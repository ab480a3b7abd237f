"""`llmshed status` before running gateways, and one that tells what a running one seldom does."""

import asyncio
import contextlib
import hashlib
import os
import sys
import termios
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from conftest import Cli, Ran
from fakes.house import House, house

OK, USAGE, UNAVAILABLE, TEMPORARY, NO_PERMISSION = 0, 64, 69, 75, 77
CHAT = {"model": "tgi", "messages": [{"role": "user", "content": "Hello"}]}


async def status(cli: Cli, url: str, *options: str | Path) -> Ran:
    """Ask from a thread, since the gateway runs in this one."""
    return await asyncio.to_thread(cli, "status", "--gateway", url, *options)


async def test_a_gateway_that_serves_is_told_in_short_lines(cli: Cli) -> None:
    async with house() as gate:
        assert (await gate.post("/v1/chat/completions", CHAT | {"max_tokens": 4})).status == 200
        assert (await gate.post("/v1/chat/completions", CHAT | {"max_tokens": 999_999})).status == 413
        ran = await status(cli, gate.data)  # which tells where the admin listener is
        told = (await status(cli, gate.admin, "--json")).json()
    lines = ran.stdout.splitlines()

    assert (ran.exit_code, ran.stderr) == (OK, "")
    assert lines[0].startswith(f"llmshed 0.1.0 at {gate.data}: ready; mode enforce; configuration ")
    assert "first arrivals so far: 2, repeats: 0; attempts for each call lately: 1.00" in lines[1]
    assert lines[4].split() == [
        "r1",
        "main",
        "up",
        "uncalibrated",
        "0",
        "of",
        "8,192",
        "0",
        "of",
        "128",
        "100%",
        "-",
        "-",
    ]
    assert lines[-1].startswith("refused or failed among the 2 decisions so far, since 20")
    assert lines[-1].endswith("Z: context_limit 1")
    assert max(map(len, lines)) <= 100
    assert "\x1b" not in ran.stdout
    assert (told["schema"], told["ready"], told["refusals"]) == ("llmshed.status/1", True, {"context_limit": 1})
    assert told["replicas"][0]["safe_budget_tokens"] == 8_192
    assert told["pools"][0]["lanes"]["bulk"] == {"requests": 0, "tokens": 0, "oldest_age_seconds": 0.0}


async def test_a_gateway_whose_replica_does_not_answer_is_not_ready(cli: Cli) -> None:
    async with house(replicas=(), pool='replicas = [{ name = "r1", url = "http://127.0.0.1:9" }]', ready=False) as gate:
        await _until_troubled(gate)
        ran = await status(cli, gate.admin)
        told = (await status(cli, gate.admin, "--json")).json()
    assert (ran.exit_code, ran.stderr) == (TEMPORARY, "")
    assert "NOT READY: does not hold: replica up" in ran.stdout.splitlines()[0]
    assert "trouble with r1: " in ran.stdout
    assert "no request has been decided yet" in ran.stdout
    assert (told["ready"], told["not_ready"], list(told["troubles"])) == (False, ["replica_up"], ["r1"])


async def test_the_token_is_asked_for_and_sent(cli: Cli, tmp_path: Path) -> None:
    digests, right = tmp_path / "digests", tmp_path / "right"
    digests.write_text(f"sha256:{hashlib.sha256(b'operator').hexdigest()}\n")
    digests.chmod(0o600)
    right.write_text("operator\n")
    async with house(f'[server]\nadmin_token_file = "{digests}"\n') as gate:
        assert (await status(cli, gate.admin, "--token-file", right)).exit_code == OK
        assert (await status(cli, gate.admin)).exit_code == NO_PERMISSION


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("http://127.0.0.1:1", UNAVAILABLE, "no gateway answers at http://127.0.0.1:1"),
        ("ftp://here", USAGE, "--gateway"),
        ("http://operator:hush@here", USAGE, "without a user"),
    ],
)
def test_a_gateway_that_cannot_be_asked_is_told_in_one_line(cli: Cli, url: str, code: int, said: str) -> None:
    ran = cli("status", "--gateway", url)
    assert (ran.exit_code, ran.stdout) == (code, "")
    assert said in ran.stderr
    assert "hush" not in ran.stderr


STATE: dict[str, Any] = {
    "config_version": "c1",
    "ready": False,
    "checks": {"not_draining": False, "replica_up": True, "ledger_holds": False},
    "mode": "observe",
    "draining": True,
    "requests_in_house": 1_200,
    "amplification": 2.5,
    "arrivals": {"first": 1_000, "declared": 0, "repeat": 30, "early": 4, "unchanged_413": 0},
    "replicas": [
        {
            "name": "r\x1b[31m1",
            "pool": "main",
            "up": False,
            "profile": None,
            "equation": {
                "safe_budget_tokens": 86_400,
                "active_tokens": 66_000,
                "active_sequences": 4,
                "hard_cap_sequences": 64,
            },
        }
    ],
    "pools": [
        {
            "name": "main",
            "queues": [
                {"lane": "interactive", "priority_class": "high", "requests": 1, "tokens": 900},
                {"lane": "interactive", "priority_class": "low", "requests": 2, "tokens": 1_100},
                {"lane": "bulk", "priority_class": "low", "requests": 0, "tokens": 0},
            ],
            "oldest_age_seconds": {"interactive": 75.0, "bulk": 0.0},
            "ladder": {
                "ladder": "full@1",
                "by_rule": 1,
                "in_force": ["stop_bulk", "cap_output"],
                "hold": {"rung": "cap_output", "remaining_seconds": 600.0, "reason": "release night"},
            },
        }
    ],
    "troubles": {"r2": "no answer\nin time"},
    "violations": ["held 5 tokens of nobody"],
}
METRICS = """\
# TYPE llmshed_build_info gauge
llmshed_build_info{version="9.9"} 1.0
llmshed_replica_budget_factor{replica="r\x1b[31m1"} 0.5
llmshed_replica_signals_total{replica="r\x1b[31m1",signal="kv"} 3.0
llmshed_replica_signals_total{replica="r\x1b[31m1",signal="stall"} 0.0
llmshed_profile_match{kind="model",replica="r\x1b[31m1",state="mismatch"} 1.0
llmshed_profile_match{kind="model",replica="r\x1b[31m1",state="match"} 0.0
llmshed_count_mismatch_total{pool="main"} 7.0
"""


@asynccontextmanager
async def scripted(state: Mapping[str, Any], decisions: list[dict[str, Any]]) -> AsyncIterator[str]:
    """Answer as an admin listener would, and yield the address."""

    async def answer(request: web.BaseRequest) -> web.Response:
        match request.path:
            case "/admin/state":
                return web.json_response(state)
            case "/admin/decisions":
                return web.json_response({"decisions": decisions[: int(request.query["n"])]})
            case "/metrics":
                return web.Response(text=METRICS)
            case _:
                return web.Response(status=404, text="not here")

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def test_all_that_may_be_wrong_is_told_and_nothing_steers_the_terminal(cli: Cli) -> None:
    reasons = [None] * 495 + ["queue_full"] * 3 + ["deadline_infeasible"] * 2 + ["malformed"] * 100
    lines = [{"reason": reason, "time": f"2026-12-01T07:00:{number % 60:02}Z"} for number, reason in enumerate(reasons)]
    async with scripted(STATE, lines) as url:
        ran = await status(cli, url)
        told = (await status(cli, url, "--json")).json()
    assert ran.exit_code == TEMPORARY
    told_lines = ran.stdout.splitlines()
    assert told_lines[0].startswith(f"llmshed 9.9 at {url}: NOT READY: does not hold: not draining, ledger holds;")
    assert "mode observe (nothing is refused or queued)" in " ".join(ran.stdout.split())
    assert "\x1b" not in ran.stdout
    assert max(map(len, told_lines)) <= 100
    for said in (
        r"r\x1b[31m1 main DOWN - 66,000 of 86,400 4 of 64 50% kv 3 model",
        "main interactive 3 2,000 1 min 15 s",
        "pool main: ladder full@1: rung 2 (stop_bulk, cap_output); by rule 1; cap_output is held for 10 min 0 s more:",
        "more: release night",
        "pool main: 7 prompts were counted otherwise than by the engine",
        "among the last 500 decisions, since 2026-12-01T07:00:19Z: queue_full 3,",
        r"trouble with r2: no answer\x0ain time",
        "a ledger does not hold, which is a bug: held 5 tokens of nobody",
    ):
        assert said in " ".join(ran.stdout.split())
    assert told["refusals"] == {"queue_full": 3, "deadline_infeasible": 2}
    assert told["pools"][0]["ladder"]["by_rule"] == 1


async def test_watching_looks_again_until_the_gateway_is_gone(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def next_look(seconds: float) -> None:
        nonlocal looks
        assert seconds == 2.0
        looks += 1
        if looks == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", next_look)
    async with scripted(STATE | {"ready": True}, []) as url:
        ran = await status(cli, url, "--watch", "--json")
        looks = 0
        plain = await status(cli, url, "--watch")
    assert (ran.exit_code, plain.exit_code) == (130, 130)
    seen = [orjson.loads(line) for line in ran.stdout.splitlines()]
    assert [(one["schema"], one["ready"]) for one in seen] == [("llmshed.status/1", True)] * 3
    assert plain.stdout.count("llmshed 9.9 at ") == 3


async def _until_troubled(gate: House) -> None:
    async with asyncio.timeout(30):
        while not gate.daemon.gateway.fleet.troubles:  # noqa: ASYNC110 - the fleet tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_a_terminal_shows_the_same_words_and_what_is_wrong_in_red() -> None:
    async with scripted(STATE, []) as url:
        ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (40, 120))
        # What the program may ask of its terminal is that of a person's, whatever runs the tests.
        environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS"}}
        ran = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "llmshed.commands", "status", "--gateway", url),
            stdout=theirs,
            env=environment | {"TERM": "xterm"},
        )
        os.close(theirs)
        shown = await asyncio.to_thread(_read_all, ours)
        assert await ran.wait() == TEMPORARY
    assert "NOT READY" in shown
    assert "66,000 of 86,400" in shown
    assert "\x1b[1;31m" in shown
    assert r"r\x1b[31m1" in shown


def _read_all(terminal: int) -> str:
    read = bytearray()
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while more := os.read(terminal, 65_536):
            read += more
    os.close(terminal)
    return read.decode()
