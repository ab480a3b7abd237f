"""`llmshed ladder` before a running gateway: what is asked, done, told and refused."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli, Ran
from fakes.house import house

OK, USAGE, BAD_DATA, NO_INPUT, UNAVAILABLE, NO_PERMISSION, CONFIG = 0, 64, 65, 66, 69, 77, 78
LADDER = 'ladder = "source"'
WHY = ("--reason", "launch at noon")


def files(folder: Path) -> str:
    return f'[ladder]\nstate_file = "{folder}/held.json"\naudit_file = "{folder}/audit.jsonl"\n'


async def ladder(cli: Cli, url: str, *words: str | Path) -> Ran:
    """Ask from a thread, since the gateway runs in this one."""
    return await asyncio.to_thread(cli, "ladder", *words, "--gateway", url)


async def test_a_rung_is_held_shown_and_given_up(cli: Cli, tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER) as gate:
        held = await ladder(cli, gate.data, "trigger", "stop-bulk", "--for", "90s", *WHY, "--yes")
        shown = await ladder(cli, gate.admin, "status")
        told = (await ladder(cli, gate.admin, "status", "--json")).json()
        given_up = await ladder(cli, gate.admin, "release", "--yes", "--reason", "over")
        again = await ladder(cli, gate.admin, "release", "--yes")
        history = await ladder(cli, gate.admin, "history", "-n", "9")
        entries = (await ladder(cli, gate.admin, "history", "--json")).json()["entries"]
    assert held.exit_code == OK, held.stderr
    assert held.stdout.startswith("main: rung 1 (stop-bulk) of ladder source@1 is held for 1m30s; in force: stop-bulk")
    assert "llmshed ladder release --pool main" in held.stdout
    assert "main: rung 1 of ladder source@1, by the rule 0" in shown.stdout
    assert "held by hand: stop-bulk, 1m" in shown.stdout
    assert (told["schema"], told["pools"][0]["in_force"]) == ("llmshed.ladder_status/1", ["stop-bulk"])
    assert given_up.stdout == "main: rung stop-bulk is given up; in force: none\n"
    assert again.stdout.startswith("main: nothing was held")
    assert [entry["what"] for entry in entries][-1] == "trigger"
    assert "launch at noon" in history.stdout
    assert len(history.stdout.splitlines()) == len(entries)


async def test_a_dry_run_tells_and_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    bulk = {"inputs": "Hello", "parameters": {"max_new_tokens": 4}}
    async with house(files(tmp_path), pool=LADDER) as gate:
        assert (await gate.post("/generate", bulk, {"x-llmshed-intent": "bulk"})).status == 200
        await gate.decision()
        ran = await ladder(cli, gate.admin, "trigger", "shed-lowest", *WHY, "--dry-run")
        told = (await ladder(cli, gate.admin, "trigger", "shed-lowest", *WHY, "--dry-run", "--json")).json()
        standing = (await ladder(cli, gate.admin, "status", "--json")).json()["pools"][0]
    assert ran.exit_code == OK, ran.stderr
    assert "in force would be stop-bulk, shed-lowest" in ran.stdout
    assert "In the last 10m it served 1 requests" in ran.stdout
    assert "stop-bulk" in ran.stdout.splitlines()[2]
    assert ran.stdout.endswith("Nothing was changed.\n")
    assert (told["dry_run"], standing["rung"], standing["hold"]) == (True, 0, None)
    assert not (tmp_path / "audit.jsonl").exists()


async def test_without_a_terminal_and_without_yes_nothing_is_done(cli: Cli, tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER) as gate:
        ran = await ladder(cli, gate.admin, "trigger", "stop-bulk", *WHY)
        standing = (await ladder(cli, gate.admin, "status", "--json")).json()["pools"][0]
    assert ran.exit_code == USAGE
    assert "give --yes" in " ".join(ran.stderr.split())
    assert standing["rung"] == 0


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("trigger", "no-such", *WHY, "--yes"), BAD_DATA, "stop-bulk"),
        (("trigger", "stop-bulk", *WHY, "--pool", "other", "--yes"), BAD_DATA, "main"),
        (("trigger", "stop-bulk", *WHY, "--for", "30s", "--yes"), USAGE, "from 1m to 7d"),
        (("trigger", "stop-bulk", *WHY, "--for", "soon", "--yes"), USAGE, "a span as in"),
        (("trigger", "stop-bulk", "--yes"), USAGE, "--reason"),
    ],
)
async def test_what_cannot_be_is_refused_with_what_is_accepted(
    cli: Cli, words: tuple[str, ...], code: int, told: str
) -> None:
    async with house(pool=LADDER) as gate:
        ran = await ladder(cli, gate.admin, *words)
    assert ran.exit_code == code, ran.stderr
    assert told in " ".join(ran.stderr.split())


async def test_a_token_is_needed_where_there_is_one(cli: Cli, tmp_path: Path) -> None:
    digest, token = tmp_path / "digest", tmp_path / "token"
    digest.write_text(f"sha256:{hashlib.sha256(b'secret').hexdigest()}\n")
    digest.chmod(0o600)
    token.write_text("secret\n")
    async with house(f'[server]\nadmin_token_file = "{digest}"\n', pool=LADDER) as gate:
        without = await ladder(cli, gate.admin, "trigger", "stop-bulk", *WHY, "--yes")
        with_it = await ladder(cli, gate.admin, "trigger", "stop-bulk", *WHY, "--yes", "--token-file", token)
    assert without.exit_code == NO_PERMISSION
    assert with_it.exit_code == OK, with_it.stderr
    assert "state_file" in with_it.stderr, "it is warned that the hold does not survive a restart"


def test_ladders_that_ship_are_sound(cli: Any) -> None:
    ran = cli("ladder", "check", "source", "full")
    assert ran.exit_code == OK, ran.stderr
    assert ran.stdout.splitlines() == ["source: source@1: sound", "full: full@1: sound"]


def test_every_mistake_of_a_file_is_told_with_its_line(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / "ladder.toml"
    file.write_text(
        'schema = "llmshed.ladder/1"\nname = "mine"\nversion = "1"\n'
        '[[rungs]]\nname = "a"\naction = "cap_output"\nagreed_on = 2026-01-01\n'
        'entry = { signal = "gpu_utilization", above = 0.9 }\n'
    )
    ran = cli("ladder", "check", str(file))
    assert ran.exit_code == CONFIG
    assert f"{file}:4: rungs[0].owner: is missing" in ran.stderr
    assert "GPU" in ran.stderr
    assert ran.stdout == ""
    found = cli("ladder", "check", str(file), "source", "--json")
    assert found.exit_code == CONFIG
    assert [result["ladder"] for result in found.json()["files"]] == [None, "source@1"]


def test_nobody_answers(cli: Any) -> None:
    assert cli("ladder", "status", "--gateway", "http://127.0.0.1:1").exit_code == UNAVAILABLE
