"""What is wrong with a call of `llmshed whatif` is told with what is accepted, and with the program's exit codes."""

import gzip
from pathlib import Path

import pytest

from conftest import Cli
from fakes.whatif_traces import HEADER, azure, flowed, totals, write_config, write_trace


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path)


class TestWhatIsWrong:
    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            (("--scale", "0"), "numbers from 0.01 to 100"),
            (("--scale", "-1"), "numbers from 0.01 to 100"),
            (("--scale", "nan"), "--scale 'nan'"),
            (("--scale", "inf"), "--scale 'inf'"),
            (("--scale", "1e9"), "--scale '1e9'"),
            (("--scale", "1,,2"), "--scale ''"),
            (("--scale", "1.0001"), "at most three decimals"),
            (("--scale", "1;2"), "--scale '1;2'"),
            (("--scale", "1,2,1.0"), "1 stands there twice"),
            (("--scale", ",".join(map(str, range(1, 22)))), "21 scales; at most 20"),
            (("--arrivals", "bursty"), "--arrivals 'bursty': accepted are trace, constant, poisson, and gamma"),
            (("--arrivals", "gamma"), "from 0.001 to 10"),
            (("--arrivals", "gamma:0"), "as in gamma:2.5"),
            (("--arrivals", "gamma:nan"), "--arrivals 'gamma:nan'"),
            (("--arrivals", "gamma:11"), "--arrivals 'gamma:11'"),
            (("--policy", "best"), "accepted are ours, none, request_limit"),
            (("x0",), "COPIES 'x0': x and a number from 1 to 1000"),
            (("4",), "COPIES '4'"),
            (("x1001",), "COPIES 'x1001'"),
            (("x-1",), "COPIES 'x-1'"),
            (("x٤",), "COPIES 'x٤'"),
            (("x1", "x2"), "one number is accepted"),
            (("--replica", "a", "x1", "--replica", "b", "x2"), "all replicas of a run are of one kind"),
            (("--trace", "-", "--replica", "-"), "standard input can be one of them"),
            (("--ceiling", "flat7"), "flat7"),
            (("--clients", "angry"), "angry"),
            (("--scale-by", "size"), "size"),
            (("--seed", "-1"), "--seed"),
            (("--seed", "x"), "--seed"),
            (("--limit", "0"), "--limit"),
            (("--duration", "0"), "--duration"),
            (("--duration", "nan"), "--duration"),
            (("--rate", "0"), "--rate"),
            (("--gateway-seconds", "-1"), "--gateway-seconds"),
            (("--gateway-seconds", "nan"), "--gateway-seconds"),
            (("--gateway-token-seconds", "-1"), "--gateway-token-seconds"),
            (("--gateway-token-seconds", "nan"), "--gateway-token-seconds"),
            (("--hmtl", "x"), "--hmtl"),
        ],
        ids=str,
    )
    def test_a_wrong_value_is_told_with_what_is_accepted(
        self, cli: Cli, trace: Path, options: tuple[str, ...], complaint: str
    ) -> None:
        ran = cli("whatif", "--trace", trace, *options)
        assert ran.exit_code == 64
        assert complaint in flowed(ran.stderr)
        assert ran.stdout == ""

    def test_a_trace_is_needed(self, cli: Cli) -> None:
        ran = cli("whatif")
        assert ran.exit_code == 64
        assert "--trace" in ran.stderr

    @pytest.mark.parametrize("name", ["/nowhere/trace.csv", "a\0b"])
    def test_a_trace_that_is_not_there_is_named(self, cli: Cli, name: str) -> None:
        ran = cli("whatif", "--trace", name)
        assert ran.exit_code == 66
        assert name.replace("\0", "\\x00") in ran.stderr

    def test_a_trace_without_a_name_is_none(self, cli: Cli) -> None:
        ran = cli("whatif", "--trace", "")
        assert (ran.exit_code, ran.stdout) == (66, "")
        assert ran.stderr == "llmshed: '': the name of a trace is needed, or - for standard input\n"

    def test_a_directory_is_no_trace(self, cli: Cli, tmp_path: Path) -> None:
        ran = cli("whatif", "--trace", tmp_path)
        assert (ran.exit_code, ran.stderr) == (66, f"llmshed: {tmp_path}: Is a directory\n")

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            (b"", "the trace is empty"),
            (HEADER.encode(), "the trace holds no request"),
            (b"when,how much\n1,2\n", "line 1: begins with 'when,how much', as no known trace does"),
            (azure(3).encode() + b"2023-11-16 18:01:00.0,NaN,4\n", "line 5: ContextTokens is 'NaN'"),
            (azure(3).encode() + b"2023-11-16 17:00:00.0,5,4\n", "line 5: arrives"),
            (b"\x1f\x8b\x08broken", "is not a whole one"),
            (gzip.compress(azure(400).encode())[:-20], "is not a whole one"),
            (b"\x00" * 1000, "line 1: "),
        ],
        ids=["empty", "no request", "unknown", "broken line", "back in time", "no gzip", "cut gzip", "binary"],
    )
    def test_what_is_wrong_with_a_trace_is_told_with_its_name_and_line(
        self, cli: Cli, tmp_path: Path, content: bytes, complaint: str
    ) -> None:
        path = tmp_path / "broken.csv"
        path.write_bytes(content)
        ran = cli("whatif", "--trace", path)
        assert ran.exit_code == 65
        assert ran.stderr.startswith(f"llmshed: {path}: ")
        assert complaint in ran.stderr
        assert ran.stderr.count(str(path)) == 1
        assert ran.stdout == ""

    def test_a_broken_standard_input_has_a_name_too(self, cli: Cli) -> None:
        assert cli("whatif", "--trace", "-", stdin="x\n").stderr.startswith("llmshed: standard input: line 1: ")

    def test_an_unknown_kind_of_trace_is_told_with_those_that_are_read(self, cli: Cli, trace: Path) -> None:
        ran = cli("whatif", "--trace", trace, "--trace-format", "azur")
        assert ran.exit_code == 65
        assert "no trace format 'azur'; accepted are azure, mooncake" in ran.stderr

    def test_a_rate_is_for_traces_that_tell_none(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        ran = cli("whatif", "--trace", trace, "--rate", "5")
        assert ran.exit_code == 65
        assert "has a rate of its own: --scale changes it; --rate is for --arrivals constant, poisson" in ran.stderr
        assert cli("whatif", "--trace", trace, "--rate", "5", "--arrivals", "trace").stderr == ran.stderr
        scrape = tmp_path / "metrics.txt"
        scrape.write_text("# TYPE x counter\nx 1\n")
        ran = cli("whatif", "--trace", scrape)
        assert ran.exit_code == 65
        assert "tells lengths and no rate: give one with --rate" in ran.stderr

    @pytest.mark.parametrize("rows", [1, 3])
    def test_arrivals_at_the_rate_of_a_trace_need_one(self, cli: Cli, tmp_path: Path, rows: int) -> None:
        trace = tmp_path / "at_once.csv"
        trace.write_text(azure(rows, gap_seconds=0.0))
        ran = cli("whatif", "--trace", trace, "--arrivals", "constant")
        assert ran.exit_code == 65
        assert ran.stderr.startswith(f"llmshed: {trace}: all of its requests come at once, which is no rate")
        assert "give one with --rate" in ran.stderr
        assert cli("whatif", "--trace", trace, "--arrivals", "constant", "--rate", "2").exit_code == 0

    def test_a_trace_of_two_files_needs_both(self, cli: Cli, tmp_path: Path, data_dir: Path) -> None:
        rates = tmp_path / "mine_rates.csv.gz"
        rates.write_bytes((data_dir / "traces/servegen_deepseek-r1_rates.csv.gz").read_bytes())
        ran = cli("whatif", "--trace", rates)
        assert ran.exit_code == 65
        assert "mine_lengths.json or mine_lengths.json.gz, is not beside it" in ran.stderr

    def test_a_trace_of_another_kind_than_said_is_refused(self, cli: Cli, trace: Path) -> None:
        ran = cli("whatif", "--trace", trace, "--trace-format", "mooncake")
        assert (ran.exit_code, ran.stdout) == (65, "")

    def test_a_replica_that_is_unknown_is_told_with_those_that_ship(self, cli: Cli, trace: Path) -> None:
        ran = cli("whatif", "--trace", trace, "--replica", "h200", "x2")
        assert ran.exit_code == 66
        assert "llama-3-8b-h100" in ran.stderr

    def test_a_broken_replica_file_is_told_line_by_line(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        broken = tmp_path / "gpu.toml"
        broken.write_text('schema = "llmshed.replica/2"\n')
        ran = cli("whatif", "--trace", trace, "--replica", broken)
        assert ran.exit_code == 78
        assert f"{broken}:1: schema" in ran.stderr

    @pytest.mark.parametrize("option", ["--config", "--against"])
    def test_a_configuration_that_cannot_be_used_is_told_as_serve_does(
        self, cli: Cli, trace: Path, tmp_path: Path, option: str
    ) -> None:
        assert cli("whatif", "--trace", trace, option, tmp_path / "none.toml").exit_code == 78
        broken = tmp_path / "broken.toml"
        broken.write_text("[[pools]]\nreplica = 1\n")
        ran = cli("whatif", "--trace", trace, option, broken)
        assert ran.exit_code == 78
        assert f"{broken}:2: pools[0].replica" in ran.stderr

    def test_a_profile_that_is_missing_is_named(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        config = write_config(tmp_path, 40_000)
        config.write_text(config.read_text().replace("gross_ceiling_tokens = 40000", 'profile = "gone.toml"'))
        ran = cli("whatif", "--trace", trace, "--config", config)
        assert ran.exit_code == 78
        assert "gone.toml" in ran.stderr

    def test_a_configuration_is_not_compared_with_itself(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        config = write_config(tmp_path, 40_000)
        ran = cli("whatif", "--trace", trace, "--config", config, "--against", config)
        assert ran.exit_code == 64
        assert "two different ones are compared" in flowed(ran.stderr)

    def test_configurations_of_one_name_are_told_apart_by_their_folders(
        self, cli: Cli, trace: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "new").mkdir()
        base, other = write_config(tmp_path, 40_000), write_config(tmp_path, 50_000, "new/llmshed.toml")
        runs = totals(cli("whatif", "--trace", trace, "--config", base, "--against", other, "--json"))
        assert [name for name, _, _ in runs] == [str(base), str(other)]
