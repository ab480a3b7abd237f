"""Rungs that a person holds over the admin listener of a running gateway: what is told, written and kept."""

import asyncio
import errno
import hashlib
import json
import os
import random
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.house import house
from fakes.ladder_house import asked, audited, files, settled, standing, written
from llmshed.admission.events import PolicyChanged, RungReleased
from llmshed.ladder.standing import Cause

HOLD = {"rung": "shed-lowest", "for_seconds": 900, "reason": "incident 7"}
SHIPPED = Path(__file__).resolve().parents[2] / "profiles" / "ladders" / "source.toml"
LADDER = 'ladder = "source"'


async def test_a_hold_is_told_written_and_given_up(tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER) as gate:
        assert (await standing(gate))["rung"] == 0
        told = await asked(gate, "/trigger", HOLD)
        assert (told["schema"], told["before"], told["after"], told["number"]) == ("llmshed.ladder_trigger/1", 0, 2, 2)
        assert (told["in_force"], told["warnings"]) == (["stop-bulk", "shed-lowest"], [])

        pool = await standing(gate)
        assert (pool["ladder"], pool["rung"], pool["by_rule"]) == ("source@1", 2, 0)
        assert pool["hold"] == {"rung": "shed-lowest", "reason": "incident 7"} | {
            "remaining_seconds": pytest.approx(900, abs=30)
        }
        assert [rung["in_force"] for rung in pool["rungs"]] == [True, True]
        state = (await gate.ask("GET", "/admin/state", admin=True)).json()
        assert state["pools"][0]["ladder"]["in_force"] == ["stop-bulk", "shed-lowest"]

        released = await asked(gate, "/release", {"reason": "over"})
        assert (released["released"]["rung"], released["before"], released["after"]) == ("shed-lowest", 2, 0)
        await settled(gate)
        lines = audited(tmp_path)
        assert [(line["what"], line["before"], line["after"]) for line in lines] == [
            ("trigger", None, None),
            ("step", 0, 2),
            ("release", None, None),
            ("step", 2, 0),
        ]
        assert (lines[0]["who"], lines[0]["reason"], lines[0]["for_seconds"]) == ("127.0.0.1", "incident 7", 900.0)
        assert [line["cause"] for line in lines] == [None, Cause.HELD, None, Cause.RELEASED]
        entries = (await asked(gate, "/history?n=3"))["entries"]
        assert entries == lines[:0:-1]
        for name in ("held.json", "audit.jsonl"):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        assert json.loads((tmp_path / "held.json").read_bytes())["holds"] == []


async def test_a_release_of_nothing_says_so_and_writes_nothing(tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER) as gate:
        assert (await asked(gate, "/release", {}))["released"] is None
        assert not (tmp_path / "audit.jsonl").exists()


async def test_a_dry_run_counts_and_changes_nothing(tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER) as gate:
        for _ in range(3):
            assert (
                await gate.post("/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": 2}})
            ).status == 200
        told = await asked(gate, "/trigger", HOLD | {"dry_run": True})
        assert (told["dry_run"], told["before"], told["after"]) == (True, 0, 2)
        assert (told["rehearsal"]["served"], told["rehearsal"]["past_seconds"]) == (3, 600.0)
        assert [effect["requests"] for effect in told["rehearsal"]["effects"]] == [0, 0]
        assert (await standing(gate))["hold"] is None
        assert written(tmp_path) == set()


async def test_a_dry_run_tells_how_far_back_it_could_look() -> None:
    async with house("[server]\ndecision_history = 2\n", pool=LADDER) as gate:
        for served, whole in ((1, True), (2, False), (2, False)):
            assert (
                await gate.post("/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": 2}})
            ).status == 200
            rehearsal = (await asked(gate, "/trigger", HOLD | {"dry_run": True}))["rehearsal"]
            assert (rehearsal["served"], rehearsal["past_seconds"] == 600.0) == (served, whole)
            assert 0 <= rehearsal["past_seconds"] <= 600


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"rung": "shed"}, "stop-bulk, shed-lowest"),
        ({"rung": 2}, "stop-bulk, shed-lowest"),
        ({"pool": "other"}, "must be one of main"),
        ({"for_seconds": 59}, "from 60 to 604800"),
        ({"for_seconds": 10**9}, "from 60 to 604800"),
        ({"for_seconds": True}, "from 60 to 604800"),
        ({"for_seconds": "15m"}, "from 60 to 604800"),
        ({"reason": None}, "is missing"),
        ({"reason": "  "}, "1 to 512"),
        ({"reason": "x" * 513}, "1 to 512"),
        ({"reason": 'done\n{"schema":"llmshed.audit/1"}'}, "control characters"),
        ({"reason": "red \x1b[31m"}, "control characters"),
        ({"reason": "line\u2028separator"}, "control characters"),
        ({"dry_run": 1}, "true or false"),
        ({"until": 5}, "is not known"),
    ],
)
async def test_what_cannot_be_meant_is_refused_and_changes_nothing(
    tmp_path: Path, wrong: dict[str, Any], words: str
) -> None:
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        assert words in (await asked(gate, "/trigger", HOLD | wrong, status=400))["error"]
        assert (await standing(gate))["rung"] == 0
        assert written(tmp_path) == set()


async def test_without_a_ladder_there_is_nothing_to_hold() -> None:
    async with house(ready=False) as gate:
        assert "no pool of this gateway has a ladder" in (await asked(gate, "/trigger", HOLD, status=400))["error"]
        assert (await asked(gate, ""))["pools"] == [{"pool": "main", "ladder": None}]


async def test_without_files_it_works_and_warns() -> None:
    async with house(pool=LADDER, ready=False) as gate:
        told = await asked(gate, "/trigger", HOLD)
        assert (told["after"], len(told["warnings"])) == (2, 2)
        assert [entry["what"] for entry in (await asked(gate, "/history"))["entries"]] == ["step", "trigger"]


async def test_only_the_bearer_of_the_token_acts_and_a_digest_tells_which(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"secret").hexdigest()
    (tmp_path / "token").write_text(f"sha256:{digest}\n")
    (tmp_path / "token").chmod(0o600)
    token = f'[server]\nadmin_token_file = "{tmp_path}/token"\n'
    async with house(token + files(tmp_path), pool=LADDER, ready=False) as gate:
        for path, body in (("", None), ("/history", None), ("/trigger", HOLD), ("/release", {})):
            await asked(gate, path, body, status=401)
        await asked(gate, "/trigger", HOLD, headers={"Authorization": "Bearer secret"})
        assert audited(tmp_path)[0]["who"] == f"127.0.0.1 token {digest[:8]}"


async def test_a_page_of_elsewhere_holds_nothing() -> None:
    async with house(pool=LADDER, ready=False) as gate:
        await asked(gate, "/trigger", HOLD, status=403, headers={"Origin": "https://evil.example"})
        assert (await standing(gate))["hold"] is None


async def test_a_reload_keeps_what_is_held_and_drops_what_is_gone(tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER) as gate:
        await asked(gate, "/trigger", HOLD)
        gate.toml += "[lanes.interactive]\ndefault_output_tokens = 7\n"
        assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200
        assert (await standing(gate))["hold"]["rung"] == "shed-lowest"
        (tmp_path / "held.json").chmod(0o600)
        assert json.loads((tmp_path / "held.json").read_bytes())["holds"][0]["rung"] == "shed-lowest"


async def test_restarts_keep_holds_by_the_wall_clock(tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        await asked(gate, "/trigger", HOLD)
    held = json.loads((tmp_path / "held.json").read_bytes())
    held["holds"][0]["until"] -= 600  # as if ten minutes had passed
    (tmp_path / "held.json").write_text(json.dumps(held))
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        pool = await standing(gate)
        assert (pool["rung"], pool["hold"]["remaining_seconds"]) == (2, pytest.approx(300, abs=30))
        entries = (await asked(gate, "/history"))["entries"]
        assert [entry["what"] for entry in entries[:2]] == ["restored", "step"]
        assert "trigger" in [entry["what"] for entry in entries]
    held["holds"][0]["until"] -= 600  # its time is over
    (tmp_path / "held.json").write_text(json.dumps(held))
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        assert (await standing(gate))["hold"] is None


@pytest.mark.parametrize("content", ["", "{", '{"schema":"llmshed.ladder_state/2","holds":[]}', "[1]"])
async def test_a_state_file_that_is_none_is_told_and_does_not_keep_the_gateway_from_serving(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "held.json").write_text(content)
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        assert "does not hold what this gateway wrote" in (await asked(gate, ""))["trouble"]
        await asked(gate, "/trigger", HOLD)
        assert (await asked(gate, ""))["trouble"] is None


@pytest.mark.parametrize("name", ["held.json", "audit.jsonl"])
async def test_a_file_that_cannot_be_written_refuses_the_act_and_changes_nothing(tmp_path: Path, name: str) -> None:
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        (tmp_path / name).mkdir()
        told = await asked(gate, "/trigger", HOLD, status=503)
        assert f"{tmp_path}/{name}: cannot be written" in told["error"]
        assert "nothing was changed" in told["error"]
        assert (await standing(gate))["hold"] is None
        assert str(tmp_path / name) in (await asked(gate, ""))["trouble"]
        (tmp_path / name).rmdir()
        await asked(gate, "/trigger", HOLD)
        assert (await asked(gate, ""))["trouble"] is None


async def test_a_hold_that_was_refused_does_not_come_with_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failing = os.fsync, [True]

    def fsync(opened: int) -> None:
        if stat.S_ISDIR(os.fstat(opened).st_mode) and failing[0]:
            raise OSError(errno.EIO, "Input/output error")  # the new state is in place by then
        real(opened)

    (tmp_path / "audit.jsonl").write_text('{"schema":"llmshed.audit/1","time":"cut of')  # by the machine's fall
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fsync)
            told = await asked(gate, "/trigger", HOLD, status=503)
            assert "held.json: cannot be written: Input/output error; nothing was changed" in told["error"]
            assert (await standing(gate))["hold"] is None
        await settled(gate)
        lines = (tmp_path / "audit.jsonl").read_text("utf-8").splitlines()[1:]
        assert [json.loads(line)["what"] for line in lines] == ["trigger", "failed"]
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        assert (await standing(gate))["hold"] is None
        await asked(gate, "/trigger", HOLD)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fsync)
            await asked(gate, "/release", {}, status=503)
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        assert (await standing(gate))["hold"]["rung"] == "shed-lowest"


async def test_a_pool_that_loses_its_ladder_loses_what_was_held(tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        await asked(gate, "/trigger", HOLD)
        driver = gate.daemon.gateway.driver
        with_it = driver.policy
        bare = replace(with_it, pools=tuple(replace(pool, ladder=None) for pool in with_it.pools))
        for policy in (bare, with_it):
            driver.tell(PolicyChanged(policy))
            await settled(gate)
            assert json.loads((tmp_path / "held.json").read_bytes())["holds"] == []
        assert ((await standing(gate))["hold"], audited(tmp_path)[-1]["cause"]) == (None, Cause.RELOADED)


async def test_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine\n")
    (tmp_path / "audit.jsonl").symlink_to(elsewhere)
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        await asked(gate, "/trigger", HOLD, status=503)
        (tmp_path / "audit.jsonl").unlink()
        (tmp_path / "held.json").symlink_to(elsewhere)
        await asked(gate, "/trigger", HOLD)  # the link is replaced, and not what it points to
        assert not (tmp_path / "held.json").is_symlink()
        assert elsewhere.read_text() == "mine\n"


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """Let no file grow beyond a size, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_leaves_no_torn_line_and_holds_nothing(tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        await asked(gate, "/trigger", HOLD)
        await settled(gate)
        before = audited(tmp_path)
        with largest_file((tmp_path / "audit.jsonl").stat().st_size + 40):
            await asked(gate, "/trigger", HOLD | {"rung": "stop-bulk"}, status=503)
        assert audited(tmp_path) == before
        assert (await standing(gate))["hold"]["rung"] == "shed-lowest"


async def test_two_at_once_come_one_after_the_other(tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        rungs = ["stop-bulk", "shed-lowest"] * 4
        await asyncio.gather(*(asked(gate, "/trigger", HOLD | {"rung": rung}) for rung in rungs))
        await settled(gate)
        last = [line for line in audited(tmp_path) if line["what"] == "trigger"][-1]
        assert len([line for line in audited(tmp_path) if line["what"] == "trigger"]) == 8
        held = json.loads((tmp_path / "held.json").read_bytes())["holds"]
        assert [one["rung"] for one in held] == [last["rung"]] == [(await standing(gate))["hold"]["rung"]]


async def test_steps_by_rule_go_on_while_the_audit_cannot_be_written(tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER, ready=False) as gate:
        await asked(gate, "/trigger", HOLD)
        await settled(gate)
        os.rename(tmp_path / "audit.jsonl", tmp_path / "audit.1")  # noqa: PTH104 - as logrotate does
        (tmp_path / "audit.jsonl").mkdir()
        book, driver = gate.daemon.gateway.ladder_book, gate.daemon.gateway.driver
        driver.tell(RungReleased("main"))  # stands for a step that nobody asked for
        await settled(gate)
        assert (await standing(gate))["rung"] == 0
        assert book.trouble is not None
        (tmp_path / "audit.jsonl").rmdir()
        await settled(gate)
        assert [line["cause"] for line in audited(tmp_path)] == [Cause.RELEASED]
        assert book.trouble is None


async def test_a_held_rung_that_a_reload_takes_away_does_not_come_back(tmp_path: Path) -> None:
    place, whole = tmp_path / "own.toml", SHIPPED.read_text("utf-8")
    place.write_text(whole)
    async with house(files(tmp_path), pool=f'ladder = "{place}"', ready=False) as gate:
        await asked(gate, "/trigger", HOLD)
        for text in (whole.rpartition("[[rungs]]")[0], whole):
            place.write_text(text)
            assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200
            pool = await standing(gate)
            assert (pool["ladder"], pool["hold"], pool["rung"]) == ("source@1", None, 0)
        await settled(gate)
        assert json.loads((tmp_path / "held.json").read_bytes())["holds"] == []
        assert [line["cause"] for line in audited(tmp_path) if line["what"] == "step"][-1] == Cause.RELOADED


async def test_a_ladder_with_mistakes_leaves_the_old_one_in_force(tmp_path: Path) -> None:
    place = tmp_path / "own.toml"
    place.write_text(SHIPPED.read_text("utf-8"))
    async with house(files(tmp_path), pool=f'ladder = "{place}"', ready=False) as gate:
        await asked(gate, "/trigger", HOLD)
        place.write_text(place.read_text("utf-8").replace("stop_bulk", "stop_balk"))
        got = await gate.ask("POST", "/admin/reload", admin=True)
        assert got.status == 400
        assert "rungs[0].action" in got.json()["problems"][0]
        assert (await standing(gate))["hold"]["rung"] == "shed-lowest"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_acts_and_reloads_at_once_leave_file_and_core_agreed(tmp_path: Path, seed: int) -> None:
    place, whole = tmp_path / "own.toml", SHIPPED.read_text("utf-8")
    place.write_text(whole)
    draw = random.Random(seed)  # noqa: S311 - a storm that can be had again
    async with house(files(tmp_path), pool=f'ladder = "{place}"', ready=False) as gate:

        async def act(what: str) -> int:
            body: dict[str, Any] | None = None
            if what == "release":
                body = {}
            elif what in {"stop-bulk", "shed-lowest"}:
                what, body = "trigger", HOLD | {"rung": what}
            else:
                place.write_text(whole if what == "whole" else whole.rpartition("[[rungs]]")[0])
            path = "/admin/reload" if body is None else f"/admin/ladder/{what}"
            return (await gate.ask("POST", path, admin=True, json=body)).status

        for _ in range(15):
            acts = draw.choices(["stop-bulk", "shed-lowest", "release", "whole", "half"], k=5)
            assert set(await asyncio.gather(*map(act, acts))) <= {200, 400, 503}
            await settled(gate)
            hold = (await standing(gate))["hold"]
            state = tmp_path / "held.json"
            held = json.loads(state.read_bytes())["holds"] if "held.json" in written(tmp_path) else []
            assert [one["rung"] for one in held] == ([] if hold is None else [hold["rung"]])
        assert len(audited(tmp_path)) > 15


async def test_reloads_are_in_the_audit_with_who_asked_and_no_key(tmp_path: Path) -> None:
    async with house(files(tmp_path), pool=LADDER) as gate:
        gate.toml += "[lanes.interactive]\ndefault_output_tokens = 7\n"
        taken = (await gate.ask("POST", "/admin/reload", admin=True)).json()
        gate.toml = "this is no toml"
        assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 400
        await settled(gate)
        one, other = (line for line in audited(tmp_path) if line["what"].startswith("reload"))
        assert (one["what"], one["config_version"], one["pool"]) == ("reload", taken["config_version"], None)
        assert (other["what"], other["config_version"]) == ("reload_refused", taken["config_version"])
        assert one["who"] == other["who"] != "signal"
        assert (await asked(gate, "/history"))["entries"][0] == other
