"""Web pages before a listener that asks for no token or key: shut out; no danger before one that does."""

from pathlib import Path

from fakes.house import house
from fakes.tenants import digest_file

REBOUND = {"Host": "rebound.example:9901"}
PAGE = {"Origin": "https://page.example", "Sec-Fetch-Site": "cross-site"}


async def test_without_a_token_no_page_of_elsewhere_reads_or_reloads() -> None:
    async with house() as gate:
        for headers in (REBOUND, PAGE):
            for method, path in (
                ("GET", "/admin/state"),
                ("GET", "/metrics"),
                ("POST", "/admin/reload"),
                ("GET", "/x"),
            ):
                got = await gate.ask(method, path, admin=True, headers=headers)
                assert (got.status, got.headers["x-llmshed-reason"]) == (403, "forbidden")
                assert "server.admin_token_file" in got.json()["error"]
            assert (
                await gate.ask("GET", "/readyz", admin=True, headers=headers)
            ).status == 200  # a probe's `Host` varies
        assert (await gate.ask("GET", "/metrics", admin=True)).status == 200
        # Fronts of the data listener send on the name that they are known by.
        assert (await gate.ask("GET", "/health", headers=REBOUND)).status == 200


async def test_with_a_token_any_name_will_do(tmp_path: Path) -> None:
    token = digest_file(tmp_path / "token", "operator")
    async with house(f'[server]\nadmin_token_file = "{token}"\n') as gate:
        scrape = {"Host": "llmshed.monitoring.svc:9901", "Authorization": "Bearer operator"}
        assert (await gate.ask("GET", "/metrics", admin=True, headers=scrape)).status == 200
        assert (await gate.ask("GET", "/metrics", admin=True, headers=REBOUND | PAGE)).status == 401


async def test_without_keys_no_page_of_elsewhere_sends_work() -> None:
    rebound = REBOUND | {"Origin": "http://rebound.example:8080"}
    body = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}
    async with house() as gate:
        for headers in (rebound, PAGE):
            got = await gate.post("/generate", body, headers=headers)
            assert (got.status, got.headers["x-llmshed-reason"]) == (403, "forbidden")
            assert "server.allow_keyless" in got.json()["error"]
            assert (await gate.ask("GET", "/v1/models", headers=headers)).status == 200
        ours = {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}
        for headers in (ours, REBOUND, {}):  # a front may send on the name that it is known by
            assert (await gate.post("/generate", body, headers=headers)).status == 200
        assert {line["reason"] for line in gate.decisions} == {"forbidden", None}
    async with house("[server]\nallow_keyless = true\n") as gate:
        assert (await gate.post("/generate", body, headers=rebound)).status == 200


async def test_with_keys_a_page_needs_one_like_everybody(tmp_path: Path) -> None:
    keys = digest_file(tmp_path / "keys", "customer")
    async with house(f'[[tenants]]\nname = "acme"\nkeys_file = "{keys}"\n') as gate:
        body = {"inputs": "Hello", "parameters": {"max_new_tokens": 2}}
        assert (await gate.post("/generate", body, headers=PAGE)).status == 401
        assert (await gate.post("/generate", body, headers=PAGE | {"Authorization": "Bearer customer"})).status == 200
