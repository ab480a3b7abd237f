"""`llmshed serve` up to the point where it would listen: its options, its checks, its errors."""

from pathlib import Path

import orjson
import pytest

from conftest import Cli
from fakes.programs import program

VALID = '[[pools]]\n[[pools.replicas]]\nname = "r1"\nurl = "http://127.0.0.1:9"\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "llmshed.toml"
    path.write_text(VALID)
    return path


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's own configurations out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))


def test_a_valid_configuration_checks(cli: Cli, config: Path) -> None:
    ran = cli("serve", "--check", "--config", config)
    assert (ran.exit_code, ran.stdout) == (0, f"{config}: valid\n")


def test_the_configuration_of_the_directory_is_found(cli: Cli, config: Path) -> None:
    assert cli("serve", "--check").stdout == f"{config}: valid\n"


def test_no_configuration_is_a_valid_one(cli: Cli) -> None:
    ran = cli("serve", "--check")
    assert (ran.exit_code, ran.stdout) == (0, "(none found: a SIMULATED replica answers): valid\n")


def test_every_mistake_is_told_with_its_line(cli: Cli, config: Path) -> None:
    config.write_text("[server]\nlistn = 3\nmax_headers = 1\n" + VALID)
    ran = cli("serve", "--check")
    assert ran.exit_code == 78
    assert f"{config}:2: server.listn" in ran.stderr
    assert "did you mean" in ran.stderr
    assert f"{config}:3: server.max_headers" in ran.stderr


@pytest.mark.parametrize("check", [True, False], ids=["--check", "a start"])
def test_a_key_file_that_others_may_read_is_refused(cli: Cli, config: Path, tmp_path: Path, *, check: bool) -> None:
    keys = tmp_path / "keys"
    keys.write_text("sha256:" + "0" * 64)
    keys.chmod(0o644)
    config.write_text(f'[[tenants]]\nname = "acme"\nkeys_file = "keys"\n{VALID}')
    ran = cli("serve", *(["--check"] if check else []))
    assert ran.exit_code == 78
    assert f"tenants[0].keys_file: {keys}: mode 0644" in ran.stderr


def test_a_profile_that_is_missing_is_told_before_anything_is_opened(cli: Cli, config: Path) -> None:
    config.write_text(VALID.replace("[[pools]]", '[[pools]]\nprofile = "none.toml"'))
    ran = cli("serve")
    assert ran.exit_code == 78
    assert "none.toml: cannot be read" in ran.stderr
    assert "listens" not in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--listen", "8080"), "server.listen"),
        (("--listen", "0.0.0.0:8080"), "there are no tenants"),
        (("--admin-listen", "0.0.0.0:9901"), "admin_token_file"),
        (("--admin-listen", "unix:relative"), "server.admin_listen"),
        (("--replica", "ftp://engine"), "pools[0].replicas[0].url"),
        (("--replica", "http://a:1", "--replica", "http://a:1"), "pools[0].replicas[1].url"),
        (("--set", "server.nothing=1"), "server.nothing"),
    ],
)
def test_options_are_held_to_the_rules_of_the_settings(cli: Cli, arguments: tuple[str, ...], told: str) -> None:
    ran = cli("serve", "--check", *arguments)
    assert ran.exit_code == 78
    assert told in ran.stderr


def test_what_a_check_found_is_one_object_when_asked(cli: Cli, config: Path) -> None:
    good = cli("serve", "--check", "--json").json()
    bad = cli("serve", "--check", "--json", "--listen", "8080")
    assert (good["schema"], good["valid"], good["file"]) == ("llmshed.config_check/1", True, str(config))
    assert (bad.exit_code, bad.json()["valid"]) == (78, False)
    assert "server.listen" in bad.json()["problems"][0]


async def test_the_open_addresses_are_one_object_when_asked() -> None:
    free = ("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
    async with program("serve", "--json", *free) as running:
        told = orjson.loads(await running.until(lambda: running.stdout.endswith(b"}\n") and bytes(running.stdout)))
        (ready,) = await running.until(lambda: running.logged("ready"))
    assert told["schema"] == "llmshed.serve/1"
    assert (told["url"], told["admin_url"]) == (ready["data"], ready["admin"])


@pytest.mark.slow
async def test_observe_mode_is_told_at_the_start() -> None:
    free = ("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
    async with program("serve", "--set", "admission.mode=observe", *free) as running:
        await running.until(lambda: running.logged("ready"))
    assert b"admission: OBSERVE MODE: " in running.stderr


def test_replicas_may_be_named_without_a_configuration(cli: Cli) -> None:
    ran = cli("serve", "--check", "--replica", "http://10.0.0.7:8080", "--replica", "http://10.0.0.8:8080")
    assert ran.exit_code == 0


def test_an_unknown_variable_is_an_error(cli: Cli) -> None:
    ran = cli("serve", "--check", env={"LLMSHED_SERVER__LISTN": "127.0.0.1:1"})
    assert ran.exit_code == 78
    assert "LLMSHED_SERVER__LISTEN" in ran.stderr


def test_a_configuration_that_is_not_there_is_named(cli: Cli, tmp_path: Path) -> None:
    ran = cli("serve", "--config", tmp_path / "absent.toml")
    assert ran.exit_code == 78
    assert f"{tmp_path / 'absent.toml'}: cannot be read" in ran.stderr


def test_the_help_tells_the_signals_and_an_example(cli: Cli) -> None:
    ran = cli("serve", "-h")
    assert ran.exit_code == 0
    for word in ("SIGTERM", "SIGHUP", "--replica", "--check"):
        assert word in ran.stdout
