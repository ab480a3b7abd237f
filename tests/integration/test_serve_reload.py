"""Another configuration while requests run: taken whole or not at all, and nobody in the house notices."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from fakes.house import QUICK, house, until
from llmshed.emulator import Emulator

NATIVE = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}


async def test_a_valid_configuration_is_in_force_for_the_next_request() -> None:
    async with house("") as gate:
        before = (await gate.ask("GET", "/admin/state", admin=True)).json()["config_version"]
        gate.toml = "[lanes.interactive]\ndefault_output_tokens = 7\n"
        result = (await gate.ask("POST", "/admin/reload", admin=True)).json()
        assert result["in_force"] is True
        assert result["config_version"] != before
        got = await gate.post("/generate", {"inputs": "Hello"})
        assert got.headers["x-llmshed-output-ceiling"] == "7"
        assert gate.decisions[-1]["config_version"] == result["config_version"]
        metrics = (await gate.ask("GET", "/metrics", admin=True)).body.decode()
        assert "llmshed_config_last_reload_successful 1.0" in metrics


@pytest.mark.parametrize(
    "mistake",
    [
        "[server]\nmax_body_byts = 5\n",
        "this is no toml",
        '[[tenants]]\nname = "acme"\nkeys_file = "/nowhere/keys"\n',
    ],
)
async def test_an_invalid_one_leaves_everything_as_it_is_and_says_so(mistake: str) -> None:
    async with house("[lanes.interactive]\ndefault_output_tokens = 9\n") as gate:
        before = (await gate.ask("GET", "/admin/state", admin=True)).json()["config_version"]
        gate.toml = mistake
        got = await gate.ask("POST", "/admin/reload", admin=True)
        assert got.status == 400
        assert got.json()["in_force"] is False
        assert got.json()["config_version"] == before
        assert got.json()["problems"]
        served = await gate.post("/generate", {"inputs": "Hello"})
        assert served.headers["x-llmshed-output-ceiling"] == "9"
        metrics = (await gate.ask("GET", "/metrics", admin=True)).body.decode()
        assert "llmshed_config_last_reload_successful 0.0" in metrics


async def test_a_gateway_that_drains_keeps_the_configuration_that_it_has() -> None:
    async with house("") as gate:
        before = gate.daemon.gateway.snapshot.version
        gate.daemon.gateway.begin_draining()
        gate.toml = "[lanes.interactive]\ndefault_output_tokens = 7\n"
        got = await gate.ask("POST", "/admin/reload", admin=True)
        assert (got.status, got.json()["in_force"]) == (400, False)
        assert "shuts down" in got.json()["problems"][0]
        assert gate.daemon.gateway.snapshot.version == got.json()["config_version"] == before


async def test_a_bad_profile_changes_nothing(tmp_path: Path) -> None:
    async with house("") as gate:
        gate.toml = (
            f'[lanes.interactive]\ndefault_output_tokens = 7\n[[pools]]\nname = "more"\naliases = []\nmodel = "m"\n'
            f'profile = "{tmp_path}/none.toml"\nreplicas = [{{ name = "x", url = "http://127.0.0.1:9" }}]\n'
        )
        assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 400
        state = (await gate.ask("GET", "/admin/state", admin=True)).json()
        assert [replica["name"] for replica in state["replicas"]] == ["r1"]
        assert (await gate.post("/generate", {"inputs": "Hello"})).headers["x-llmshed-output-ceiling"] == "512"


async def test_what_needs_a_restart_keeps_its_value_and_is_named() -> None:
    async with house("") as gate:
        gate.toml = '[server]\nkeepalive_seconds = 5\nevent_loop = "asyncio"\n[counting]\nthreads = 3\n'
        result = (await gate.ask("POST", "/admin/reload", admin=True)).json()
        assert result["in_force"] is True
        assert set(result["kept"]) == {"server.keepalive_seconds", "server.event_loop", "counting"}
        assert gate.daemon.gateway.snapshot.config.counting.threads == 2


async def test_requests_in_the_house_keep_what_they_came_under() -> None:
    async with house("") as gate:
        long = {"inputs": "Hello", "parameters": {"max_new_tokens": 300}}
        running = asyncio.ensure_future(gate.post("/generate_stream", long))
        await until(lambda: gate.active_tokens() > 0)
        old = gate.daemon.gateway.snapshot.version
        gate.toml = "[lanes.interactive]\nidle_timeout_seconds = 0.001\n"
        assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200
        assert (await running).body.count(b"data:") == 300
        assert gate.decisions[-1]["config_version"] == old


async def test_keys_may_be_added_and_taken_away(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"sha256:{hashlib.sha256(b'one').hexdigest()}\n")
    keys.chmod(0o600)
    table = f'[[tenants]]\nname = "acme"\nkeys_file = "{keys}"\n'
    async with house("") as gate:
        assert (await gate.post("/generate", NATIVE)).status == 200
        gate.toml = table
        await gate.ask("POST", "/admin/reload", admin=True)
        assert (await gate.post("/generate", NATIVE)).status == 401
        assert (await gate.post("/generate", NATIVE, {"Authorization": "Bearer one"})).status == 200
        keys.write_text(f"sha256:{hashlib.sha256(b'two').hexdigest()}\n")
        await gate.ask("POST", "/admin/reload", admin=True)
        assert (await gate.post("/generate", NATIVE, {"Authorization": "Bearer one"})).status == 401
        assert (await gate.post("/generate", NATIVE, {"Authorization": "Bearer two"})).status == 200


async def test_replicas_may_be_added_by_a_reload() -> None:
    async with house("") as gate:
        second = Emulator(QUICK)
        url = await second.start()
        try:
            gate.toml = (
                '[[pools]]\nname = "second"\naliases = ["other"]\nmodel = "other"\n'
                f'replicas = [{{ name = "s1", url = "{url}" }}]\n'
            )
            assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200
            await until(lambda: len(gate.daemon.gateway.fleet.specs("second")) == 1)
            chat = {"model": "other", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
            got = await gate.post("/v1/chat/completions", chat)
            assert (got.status, got.headers["x-llmshed-replica"]) == (200, "s1")
            gate.toml = ""
            assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200
            assert (await gate.post("/v1/chat/completions", chat)).status == 404
        finally:
            await second.stop()


async def test_reloads_under_traffic_drop_nothing() -> None:
    async with house("") as gate:
        statuses: list[int] = []

        async def traffic() -> None:
            for _ in range(40):
                got = await gate.post("/generate", NATIVE)
                statuses.append(got.status)

        async def reloads() -> None:
            for number in range(20):
                gate.toml = f"[lanes.interactive]\ndefault_output_tokens = {number + 1}\n"
                assert (await gate.ask("POST", "/admin/reload", admin=True)).status == 200

        await asyncio.gather(traffic(), traffic(), reloads())
        assert statuses == [200] * 80
