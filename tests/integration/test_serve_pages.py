"""Web pages before an admin listener: shut out while it has no token, no danger where it has one."""

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
