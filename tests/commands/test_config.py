"""`llmshed config`: what goes to stdout, what to stderr, and the exit code."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
import tomli

from llmshed.config.loading import load_config

POOL = '[[pools]]\nreplicas = [{ name = "r1", url = "simulated:" }]\n'
BROKEN = f'{POOL}[server]\nlisen = "127.0.0.1:1"\nmax_headers = 1\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory without a user's configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return tmp_path


class TestCheck:
    def test_a_valid_file_is_said_to_be_valid(self, cli: Any, here: Path) -> None:
        (here / "llmshed.toml").write_text(POOL, "utf-8")

        ran = cli("config", "check")

        assert (ran.exit_code, ran.stdout, ran.stderr) == (0, "llmshed.toml: valid\n", "")

    def test_every_mistake_is_a_line_on_stderr_that_begins_with_its_place(self, cli: Any, here: Path) -> None:
        (here / "broken.toml").write_text(BROKEN, "utf-8")

        ran = cli("config", "check", "broken.toml")

        assert ran.exit_code == 78
        assert ran.stdout == ""
        assert [line.split(": ")[:2] for line in ran.stderr.splitlines()] == [
            ["broken.toml:4", "server.lisen"],
            ["broken.toml:5", "server.max_headers"],
        ]

    def test_a_warning_does_not_fail(self, cli: Any, here: Path) -> None:
        (here / "llmshed.toml").write_text(f'{POOL}lanes = ["bulk"]\n', "utf-8")

        ran = cli("config", "check")

        assert ran.exit_code == 0
        assert ran.stderr.startswith("warning: llmshed.toml:1: pools: no pool serves the interactive lane")

    def test_variables_and_flags_are_checked_too(self, cli: Any, here: Path) -> None:
        (here / "llmshed.toml").write_text(POOL, "utf-8")

        ran = cli("config", "check", "--set", "log.level=loud", env={"LLMSHED_TYPO": "1"})

        assert ran.exit_code == 78
        assert "flag --set log.level: log.level: " in ran.stderr
        assert "env LLMSHED_TYPO: no such setting" in ran.stderr

    def test_files_that_the_configuration_names_are_opened(self, cli: Any, here: Path) -> None:
        (here / "llmshed.toml").write_text(f'{POOL}profile = "none.toml"\n', "utf-8")

        ran = cli("config", "check")

        assert ran.exit_code == 78
        assert f"pools[0].profile: {here}/none.toml: cannot be read" in ran.stderr

    def test_without_any_file_the_places_are_named(self, cli: Any, here: Path) -> None:
        if Path("/etc/llmshed/llmshed.toml").exists():
            pytest.skip("this machine has a configuration of its own")
        ran = cli("config", "check")

        assert ran.exit_code == 78
        assert f"{here}/xdg/llmshed/llmshed.toml" in ran.stderr

    @pytest.mark.parametrize(("text", "exit_code"), [(POOL, 0), (BROKEN, 78)])
    def test_json_holds_the_same_as_one_object(self, cli: Any, here: Path, text: str, exit_code: int) -> None:
        (here / "llmshed.toml").write_text(text, "utf-8")

        ran = cli("config", "check", "--json")

        result = ran.json()
        assert ran.exit_code == exit_code
        assert result["schema"] == "llmshed.config_check/1"
        assert result["valid"] is (exit_code == 0)
        assert len(result["problems"]) == (2 if exit_code else 0)

    def test_it_may_be_named_as_for_the_other_verbs_but_not_twice(self, cli: Any, here: Path) -> None:
        (here / "other.toml").write_text(POOL, "utf-8")

        assert cli("config", "check", "--config", "other.toml").stdout == "other.toml: valid\n"
        assert cli("config", "check", "other.toml", "-c", "other.toml").exit_code == 64

    def test_json_is_one_object_without_any_file_too(self, cli: Any, here: Path) -> None:
        ran = cli("config", "check", here / "none.toml", "--json")

        assert ran.exit_code == 78
        assert (ran.json()["file"], ran.json()["valid"]) == (None, False)
        assert "none.toml" in ran.json()["problems"][0]

    def test_the_repository_s_own_configuration_is_valid(self, cli: Any, repository: Path) -> None:
        ran = cli("config", "check", repository / "llmshed.toml")
        assert (ran.exit_code, ran.stderr) == (0, "")


class TestShow:
    def test_what_is_shown_is_a_configuration_with_the_same_meaning(self, cli: Any, here: Path) -> None:
        (here / "llmshed.toml").write_text(f"{POOL}[server]\nkeepalive_seconds = 3\n", "utf-8")

        ran = cli("config", "show", "--origin", env={"LLMSHED_LOG__LEVEL": "debug"})

        assert ran.exit_code == 0
        again = load_config(ran.stdout, "shown", {}, {}).config
        assert (again.server.keepalive_seconds, again.log.level) == (3.0, "debug")
        assert "keepalive_seconds = 3.0  # llmshed.toml:4" in ran.stdout
        assert 'level = "debug"  # env LLMSHED_LOG__LEVEL' in ran.stdout

    def test_without_origins_there_are_none(self, cli: Any, here: Path) -> None:
        (here / "llmshed.toml").write_text(POOL, "utf-8")

        shown = tomli.loads(cli("config", "show").stdout)

        assert shown["server"]["listen"] == "127.0.0.1:8080"
        assert "default" not in cli("config", "show").stdout.replace("default_output_tokens", "")

    def test_json_holds_the_settings_and_their_origins(self, cli: Any, here: Path) -> None:
        (here / "other.toml").write_text(POOL, "utf-8")

        result = cli("config", "show", "-c", "other.toml", "--set", "log.level=error", "--origin", "--json").json()

        assert result["schema"] == "llmshed.config/1"
        assert result["config"]["log"]["level"] == "error"
        assert result["origins"]["log.level"] == "flag --set log.level"
        assert result["origins"]["pools[0].replicas[0].url"] == "other.toml:2"

    def test_an_invalid_configuration_is_not_shown(self, cli: Any, here: Path) -> None:
        (here / "llmshed.toml").write_text(BROKEN, "utf-8")

        ran = cli("config", "show")

        assert (ran.exit_code, ran.stdout) == (78, "")
        assert "did you mean `server.listen`?" in ran.stderr

    @pytest.mark.parametrize("setting", ["server.listen", "=", ""])
    def test_a_flag_without_a_value_or_a_path_is_refused(self, cli: Any, here: Path, setting: str) -> None:
        (here / "llmshed.toml").write_text(POOL, "utf-8")
        ran = cli("config", "show", "--set", setting)
        assert ran.exit_code == (78 if "=" in setting else 64)
        assert "server.listen" in ran.stderr


class TestSchema:
    def test_the_schema_of_the_configuration(self, cli: Any) -> None:
        schema = cli("config", "schema").json()

        assert schema["title"] == "llmshed.toml"
        assert "listen" in schema["$defs"]["ServerSettings"]["properties"]

    @pytest.mark.parametrize(("flag", "shipped"), [("--profile", "schema.json"), ("--ladder", "ladders/schema.json")])
    def test_a_shipped_schema_is_the_one_that_is_printed(
        self, cli: Any, repository: Path, flag: str, shipped: str
    ) -> None:
        ran = cli("config", "schema", flag)

        assert (repository / "profiles" / shipped).read_text("utf-8") == ran.stdout

    def test_one_schema_is_printed_at_a_time(self, cli: Any) -> None:
        ran = cli("config", "schema", "--profile", "--ladder")

        assert (ran.exit_code, ran.stdout) == (64, "")

    def test_json_wraps_it(self, cli: Any) -> None:
        result = cli("config", "schema", "--json").json()
        assert result["schema"] == "llmshed.config_schema/1"
        assert result["json_schema"]["title"] == "llmshed.toml"


class TestKey:
    def test_a_key_comes_with_the_digest_that_is_stored(self, cli: Any) -> None:
        ran = cli("config", "key")

        key, digest = ran.stdout.splitlines()
        assert digest == f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
        assert ran.stderr == ""

    def test_keys_have_128_bits_at_least_and_never_come_twice(self, cli: Any) -> None:
        keys = {cli("config", "key", "--json").json()["key"] for _ in range(20)}

        assert len(keys) == 20
        assert all(len(key.removeprefix("llmshed-")) * 6 >= 128 for key in keys)  # 6 bits a character


def test_a_keys_file_made_from_the_digest_is_taken(cli: Any, here: Path) -> None:
    digest = cli("config", "key", "--json").json()["digest"]
    keys = here / "keys"
    keys.write_text(f"{digest}\n", "utf-8")
    keys.chmod(0o600)
    (here / "llmshed.toml").write_text(f'{POOL}[[tenants]]\nname = "t"\nkeys_file = "keys"\n', "utf-8")

    assert cli("config", "check").exit_code == 0
