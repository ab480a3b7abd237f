"""`llmshed profile`: what it prints, where, and the exit code."""

from pathlib import Path

import pytest

from conftest import Cli
from fakes.profiles import PROFILE, written
from llmshed.config.lanes import BulkThresholds, InteractiveThresholds
from llmshed.profile.thresholds import thresholds_version

SOUND = PROFILE.replace('basis = "declared"', 'basis = "declared"\npreemptions_per_minute = 0')


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory without a user's configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return tmp_path


class TestShow:
    def test_every_field_that_is_there_is_a_line_behind_what_follows_from_it(self, cli: Cli, here: Path) -> None:
        ran = cli("profile", "show", written(here))

        shown = dict(line.split(maxsplit=1) for line in ran.stdout.splitlines())
        assert ran.exit_code == 0
        assert list(shown)[:4] == ["profile", "file", "safe_budget_tokens", "thresholds_version"]
        assert shown["profile"] == "measured@7"
        assert shown["safe_budget_tokens"] == shown["budget.gross_ceiling_tokens"] == "40,000"
        assert shown["fingerprint.gpu"] == "NVIDIA L4"
        assert "fingerprint.quantization" not in shown

    def test_json_holds_the_profile_as_it_stands(self, cli: Cli, here: Path) -> None:
        body = cli("profile", "show", written(here), "--json").json()

        assert body["schema"] == "llmshed.profile_show/1"
        assert body["profile"]["schema"] == "llmshed.profile/1"
        assert body["profile"]["fingerprint"]["dtype"] == "float16"
        assert body["thresholds_version"] == thresholds_version(InteractiveThresholds(), BulkThresholds())
        assert body["age_days"] is None

    @pytest.mark.usefixtures("here")
    def test_the_one_that_ships_has_a_name(self, cli: Cli) -> None:
        assert "simulated@1" in cli("profile", "show", "simulated").stdout

    @pytest.mark.usefixtures("here")
    def test_a_missing_file_is_said_to_be_missing(self, cli: Cli) -> None:
        ran = cli("profile", "show", "no.toml")
        assert (ran.exit_code, ran.stdout) == (78, "")
        assert ran.stderr == "llmshed: no.toml: cannot be read: No such file or directory\n"

    @pytest.mark.usefixtures("here")
    def test_a_name_of_nothing_is_no_file(self, cli: Cli) -> None:
        for command in (("show", ""), ("diff", "simulated", "")):
            ran = cli("profile", *command)
            assert (ran.exit_code, ran.stderr) == (78, "llmshed: '' names no file\n")


class TestCheck:
    def test_a_sound_one_is_told_with_what_it_leaves_open(self, cli: Cli, here: Path) -> None:
        ran = cli("profile", "check", written(here, SOUND))

        assert (ran.exit_code, ran.stdout) == (0, f"{here}/measured.toml: measured@7: sound\n")
        assert all(line.startswith(f"warning: {here}/measured.toml: ") for line in ran.stderr.splitlines())
        assert "fingerprint.date: is not stated" in ran.stderr

    def test_a_hard_cap_without_its_preemption_budget_is_refused(self, cli: Cli, here: Path) -> None:
        ran = cli("profile", "check", written(here))

        assert (ran.exit_code, ran.stdout) == (78, "")
        assert ran.stderr.startswith(f"{here}/measured.toml: budget.preemptions_per_minute: is missing")

    def test_all_mistakes_of_all_files_are_told(self, cli: Cli, here: Path) -> None:
        (here / "broken.toml").write_text("name = 7\n")
        (here / "old.toml").write_text(f"{SOUND}date = 2020-01-01\n")
        ran = cli("profile", "check", "broken.toml", "old.toml", written(here, SOUND), "--json")

        body = ran.json()
        assert (ran.exit_code, body["schema"], body["valid"]) == (78, "llmshed.profile_check/1", False)
        assert [bool(file["problems"]) for file in body["files"]] == [True, True, False]
        assert all(line.startswith("broken.toml:") for line in body["files"][0]["problems"])
        assert "days ago; at most 90 are accepted" in body["files"][1]["problems"][0]

    def test_another_age_may_be_accepted(self, cli: Cli, here: Path) -> None:
        old = written(here, f"{SOUND}date = 2020-01-01\n")
        assert cli("profile", "check", old).exit_code == 78
        assert cli("profile", "check", old, "--max-age-days", "100000").exit_code == 0

    def test_the_profiles_of_this_repository_are_sound(self, cli: Cli, repository: Path) -> None:
        files = [*sorted((repository / "bench" / "profiles").glob("*.toml")), repository / "profiles/simulated.toml"]
        assert cli("profile", "check", *files, repository / "profiles/examples/worked-example.toml").exit_code == 0


class TestDiff:
    def test_fields_that_differ_are_told_with_what_they_are_for(self, cli: Cli, here: Path) -> None:
        (here / "a.toml").write_text(PROFILE)
        (here / "b.toml").write_text(
            PROFILE.replace("40_000", "30_000").replace("3.3.5", "3.3.6").replace('"7"', '"8"')
        )
        ran = cli("profile", "diff", "a.toml", "b.toml")

        assert ran.exit_code == 0
        assert [line.split() for line in ran.stdout.splitlines()[1:]] == [
            ["measured@7", "and", "measured@8"],
            ["field", "A", "B", "for"],
            ["version", "7", "8", "record"],
            ["budget.gross_ceiling_tokens", "40,000", "30,000", "admission"],
            ["fingerprint.engine_version", "3.3.5", "3.3.6", "likeness"],
        ]
        told = cli("profile", "diff", "a.toml", "b.toml", "--json").json()
        assert told["differences"][1] == {
            "field": "budget.gross_ceiling_tokens",
            "a": 40_000,
            "b": 30_000,
            "use": "admission",
        }

    @pytest.mark.usefixtures("here")
    def test_the_same_ones_are_said_to_be_the_same(self, cli: Cli) -> None:
        assert cli("profile", "diff", "simulated", "simulated").stdout == "simulated and simulated are the same\n"
        assert cli("profile", "diff", "simulated", "simulated", "--json").json()["differences"] == []


class TestList:
    def test_those_of_pools_come_first_then_others_beside_the_configuration(self, cli: Cli, here: Path) -> None:
        written(here)
        (here / "profiles").mkdir()
        (here / "profiles" / "spare.toml").write_text(SOUND.replace('name = "measured"', 'name = "spare"'))
        (here / "profiles" / "broken.toml").write_text('schema = "llmshed.profile/1"\n')
        (here / "other.toml").write_text("[tool]\n")
        pool = 'profile = "measured.toml"\nreplicas = [{ name = "r", url = "simulated:" }]\n'
        (here / "llmshed.toml").write_text(f'[[pools]]\nname = "chat"\n{pool}')
        ran = cli("profile", "list")

        rows = [line.split() for line in ran.stdout.splitlines()[3:]]
        assert ran.exit_code == 0
        assert [(row[0], row[-2], Path(row[-1]).name) for row in rows] == [
            ("measured@7", "chat", "measured.toml"),
            ("broken", "-", "broken.toml"),
            ("spare@7", "-", "spare.toml"),
            ("simulated@1", "-", "simulated"),
        ]
        assert ran.stderr.startswith("llmshed: profiles/broken.toml")
        told = cli("profile", "list", "--json").json()["profiles"]
        assert [one["pools"] for one in told] == [["chat"], [], [], []]
        assert told[0]["safe_budget_tokens"] == 40_000
        assert "budget" in told[1]["problem"]

    def test_without_a_configuration_the_working_directory_is_looked_through(self, cli: Cli, here: Path) -> None:
        written(here)
        assert [one["profile"] for one in cli("profile", "list", "--json").json()["profiles"]] == [
            "measured@7",
            "simulated@1",
        ]

    def test_pools_of_simulated_replicas_use_the_one_that_ships(self, cli: Cli, here: Path) -> None:
        (here / "llmshed.toml").write_text(
            '[[pools]]\nname = "toy"\nreplicas = [{ name = "a", url = "simulated:" }]\n'
            '[[pools]]\nname = "real"\nreplicas = [{ name = "b", url = "http://127.0.0.1:9" }]\n'
        )
        told = cli("profile", "list", "--json").json()["profiles"]
        assert [(one["profile"], one["pools"]) for one in told] == [("simulated@1", ["toy"])]

    @pytest.mark.usefixtures("here")
    def test_a_setting_is_looked_at_also_without_a_configuration(self, cli: Cli) -> None:
        ran = cli("profile", "list", "--set", "foo")
        assert (ran.exit_code, ran.stdout) == (64, "")
        assert "'foo': must be PATH=VALUE" in ran.stderr
        assert cli("profile", "list", "--set", "server.listen=127.0.0.1:1").exit_code == 78

    @pytest.mark.usefixtures("here")
    def test_a_configuration_that_is_named_has_to_be_there(self, cli: Cli) -> None:
        assert cli("profile", "list", "--config", "no.toml").exit_code == 78


class TestVerify:
    def test_a_mix_that_was_drawn_from_a_file_has_to_be_named(self, cli: Cli, here: Path) -> None:
        drawn = SOUND.replace("[fingerprint]\n", '[fingerprint]\nworkload = "day.jsonl, ceilings asked"\n')
        ran = cli("profile", "verify", "http://127.0.0.1:9", "--profile", written(here, drawn))
        assert (ran.exit_code, ran.stdout) == (64, "")
        assert "'day.jsonl, ceilings asked': name that by --workload, or a --mix" in ran.stderr

    def test_a_missing_profile_is_said_before_anything_is_sent(self, cli: Cli, here: Path) -> None:
        ran = cli("profile", "verify", "http://127.0.0.1:9", "--profile", here / "no.toml")
        assert (ran.exit_code, ran.stdout) == (78, "")

    def test_nobody_there_is_unavailable(self, cli: Cli, here: Path) -> None:
        ran = cli("profile", "verify", "http://127.0.0.1:9", "--profile", written(here))
        assert (ran.exit_code, ran.stdout) == (69, "")
        assert "nobody answers at http://127.0.0.1:9" in ran.stderr
