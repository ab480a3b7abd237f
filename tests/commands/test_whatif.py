"""`llmshed whatif` as it is typed: what it is asked, and the traffic that it reads."""

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Cli, Ran
from fakes.whatif_traces import azure, flowed, told, totals, write_config, write_trace
from llmshed.whatif.gates.table import GATES
from llmshed.workload.formats import FORMATS


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path)


class TestTheQuestion:
    def test_the_command_of_the_manual_works_as_it_is_written(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        base, other = write_config(tmp_path, 40_000), write_config(tmp_path, 2_000, "other.toml")
        ran = cli(
            "whatif", "--trace", trace, "--replica", "llama-3-8b-a10g", "x4", "--config", base,
            "--against", other, "--scale", "1,2,5,10", "--json",
        )  # fmt: skip
        runs = totals(ran)
        assert list(runs) == [(name, "ours", scale) for scale in (1, 2, 5, 10) for name in (base.name, other.name)]
        assert len(told(ran)["runs"][0]["report"]["replicas"]) == 4
        assert runs[base.name, "ours", 1]["arrived"] == 60
        assert runs[base.name, "ours", 10]["arrived"] == 600
        assert runs[other.name, "ours", 10]["good"] < runs[base.name, "ours", 10]["good"]

    def test_without_anything_else_the_simulated_replica_meets_the_trace(self, cli: Cli, trace: Path) -> None:
        ran = cli("whatif", "--trace", trace)
        assert ran.exit_code == 0
        facts = dict(re.findall(r"^(\w[\w ]*?) {2,}(.*)$", ran.stdout, flags=re.MULTILINE))
        assert facts["trace"].startswith(f"{trace}: azure, 60 requests in 29.5 s")
        assert facts["replicas"] == "1 x the simulated replica that ships with llmshed, TGI 3.3.5"
        assert facts["configurations"] == "(defaults) (44,235 tokens a replica, profile simulated@1)"
        assert facts["output ceilings"].startswith("pow2")
        assert (facts["clients"], facts["seed"]) == ("none: give up when refused", "0")
        assert ran.stderr == ""

    def test_a_replica_without_a_configuration_lends_what_its_cache_holds(self, cli: Cli, trace: Path) -> None:
        ran = cli("whatif", "--trace", trace, "--replica", "llama-3-8b-h100", "x2", "--json")
        (configuration,) = told(ran)["configurations"]
        assert {replica["profile"] for replica in configuration["replicas"]} == {"uncalibrated"}
        assert configuration["replicas"][0]["safe_budget_tokens"] > 300_000
        assert len(configuration["replicas"]) == 2
        assert "is uncalibrated" in told(ran)["warnings"][0]

    def test_a_configuration_is_compared_with_the_defaults_if_no_other_is_named(
        self, cli: Cli, trace: Path, tmp_path: Path
    ) -> None:
        ran = cli("whatif", "--trace", trace, "--against", write_config(tmp_path, 2_000), "--json")
        assert [name for name, _, _ in totals(ran)] == ["(defaults)", "llmshed.toml"]
        assert told(ran)["differences"][0]["base"] == "(defaults)"

    def test_a_file_of_ones_own_is_a_replica_too(self, cli: Cli, trace: Path, tmp_path: Path, repository: Path) -> None:
        own = tmp_path / "gpu.toml"
        own.write_bytes((repository / "profiles/replicas/llama-3-8b-h100.toml").read_bytes())
        named = cli("whatif", "--trace", trace, "--replica", "llama-3-8b-h100", "--json")
        assert cli("whatif", "--trace", trace, "--replica", own, "--json").stdout == named.stdout

    def test_a_replica_of_vllm_meets_the_trace_too(self, cli: Cli, trace: Path) -> None:
        options = (
            "whatif",
            "--trace",
            trace,
            "--replica",
            "llama-3.2-1b-rtx3090",
            "--policy",
            "ours",
            "--policy",
            "none",
        )
        ran = cli(*options, "--json")
        answer = told(ran)
        assert (answer["replica"]["name"], answer["replica"]["engine"]) == ("llama-3.2-1b-rtx3090", "vLLM")
        (replica,) = answer["configurations"][0]["replicas"]
        assert replica["safe_budget_tokens"] == answer["replica"]["kv_tokens"] * 9 // 10
        assert all(total["good"] == 60 for total in totals(ran).values())
        for run in answer["runs"]:
            assert run["report"]["ledger"]["broken_invariants"] == []
            assert run["report"]["replicas"][0]["preemptions_per_minute"] == 0
        assert cli(*options, "--json").stdout == ran.stdout
        assert "\nreplicas         1 x llama-3.2-1b-rtx3090, vLLM\n" in cli(*options).stdout

    def test_policies_are_run_in_the_order_in_which_they_are_named(self, cli: Cli, trace: Path) -> None:
        ran = cli("whatif", "--trace", trace, "--policy", "none", "--policy", "ours", "--policy", "none", "--json")
        assert [policy for _, policy, _ in totals(ran)] == ["none", "ours"]

    @pytest.mark.slow
    def test_all_stands_for_every_policy(self, cli: Cli, trace: Path) -> None:
        ran = cli("whatif", "--trace", trace, "--policy", "all", "--scale", "4", "--json")
        runs = totals(ran)
        assert [policy for _, policy, _ in runs] == list(GATES)
        assert {total["arrived"] for total in runs.values()} == {240}

    def test_scaling_in_time_hurries_the_same_requests(self, cli: Cli, trace: Path) -> None:
        ran = cli("whatif", "--trace", trace, "--scale", "4", "--scale-by", "time", "--json")
        (run,) = told(ran)["runs"]
        assert run["report"]["requests"] == 60
        assert run["report"]["offered_seconds"] == pytest.approx(29.5 / 4)

    def test_pools_share_the_replicas_by_those_that_they_list(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        config = tmp_path / "two.toml"
        config.write_text(
            '[[pools]]\nname = "a"\nlanes = ["interactive"]\nreplicas = [{ name = "a1", url = "http://h:1" }, '
            '{ name = "a2", url = "http://h:2" }, { name = "a3", url = "http://h:3" }]\n'
            '[[pools]]\nname = "b"\nlanes = ["bulk"]\nreplicas = [{ name = "b1", url = "http://h:4" }]\n'
        )
        ran = cli("whatif", "--trace", trace, "--config", config, "x4", "--json")
        (configuration,) = told(ran)["configurations"]
        assert [replica["pool"] for replica in configuration["replicas"]] == ["a", "a", "a", "b"]
        text = cli("whatif", "--trace", trace, "--config", config, "x4").stdout
        assert " 4 x the simulated replica that ships with llmshed, TGI 3.3.5: 3 in pool a, 1 in pool b\n" in text
        ran = cli("whatif", "--trace", trace, "--config", config)
        assert ran.exit_code == 64
        assert "1 replicas cannot serve 2 pools" in flowed(ran.stderr)


def offered(ran: Ran) -> list[tuple[float, int, float]]:
    """Return scale, requests and time of their arrivals of each run."""
    runs = [(run["scale"], run["report"]) for run in told(ran)["runs"]]
    return [(scale, report["requests"], report["offered_seconds"]) for scale, report in runs]


class TestOtherArrivals:
    def test_equal_gaps_keep_the_rate_of_the_trace_or_have_another(self, cli: Cli, tmp_path: Path) -> None:
        trace = tmp_path / "uneven.csv"
        trace.write_text(azure(40, gap_seconds=0.1) + azure(60).split("\n", 1)[1].split("\n", 40)[40])
        own = cli("whatif", "--trace", trace, "--arrivals", "constant", "--json")
        assert told(own)["arrivals"] == {
            "process": "constant",
            "rate_per_second": pytest.approx(59 / 29.5),
            "interarrival_cv": 0.0,
        }
        assert offered(own) == [pytest.approx((1, 60, 29.5))]
        other = cli("whatif", "--trace", trace, "--arrivals", "constant", "--rate", "5", "--json")
        assert offered(other) == [pytest.approx((1, 60, 59 / 5))]
        assert told(own)["trace"] == told(other)["trace"], "the trace is told as it is"

    @pytest.mark.parametrize(("scale", "requests"), [("0.5", 30), ("2.5", 150), ("10", 600)])
    def test_scales_change_the_rate_and_not_the_variation(
        self, cli: Cli, trace: Path, scale: str, requests: int
    ) -> None:
        common = ("whatif", "--trace", trace, "--arrivals", "constant", "--scale", scale, "--json")
        ((_, arrived, seconds),) = offered(cli(*common))
        assert arrived == pytest.approx(requests, abs=12), "thinning draws"
        assert seconds == pytest.approx((arrived - 1) / (2 * float(scale))), "equal gaps at every scale"
        assert offered(cli(*common, "--scale-by", "time")) == [pytest.approx((float(scale), 60, 29.5 / float(scale)))]

    @pytest.mark.parametrize("scale_by", ["rate", "time"])
    def test_bursts_make_more_refusals_than_equal_gaps_at_every_scale(
        self, cli: Cli, tmp_path: Path, scale_by: str
    ) -> None:
        trace, config = tmp_path / "long.csv", write_config(tmp_path, 6_000)
        trace.write_text(azure(300))

        def refused(process: str) -> list[int]:
            options = ("--arrivals", process, "--scale", "1,3", "--scale-by", scale_by, "--json")
            runs = totals(cli("whatif", "--trace", trace, "--config", config, *options))
            return [sum(run["refusals"].values()) for run in runs.values()]

        even, bursts = refused("constant"), refused("gamma:5")
        assert all(many > few + 50 for few, many in zip(even, bursts, strict=True))

    def test_one_seed_gives_one_traffic_whatever_meets_it(self, cli: Cli, trace: Path) -> None:
        def ran(*options: str) -> Ran:
            return cli("whatif", "--trace", trace, "--arrivals", "gamma:2.5", "--json", *options)

        both = ran("--policy", "ours", "--policy", "none", "--scale", "1,2.5")
        assert both.stdout == ran("--policy", "ours", "--policy", "none", "--scale", "1,2.5").stdout
        first, second, *_ = offered(both)
        assert first == second, "every policy meets the same arrivals"
        assert offered(ran("--seed", "1")) != [first] == offered(ran())

    def test_requests_keep_their_order_and_lengths(self, cli: Cli, trace: Path) -> None:
        plain, moved = (
            told(cli("whatif", "--trace", trace, "--arrivals", one, "--json"))["runs"][0]["report"]
            for one in ("trace", "poisson")
        )
        assert moved["quartile_edges"] == plain["quartile_edges"]
        assert moved["total"]["offered_tokens_per_second"] * moved["offered_seconds"] == pytest.approx(
            plain["total"]["offered_tokens_per_second"] * plain["offered_seconds"]
        )

    def test_they_are_told(self, cli: Cli, trace: Path) -> None:
        assert "\narrivals         trace: as the trace says\n" in cli("whatif", "--trace", trace).stdout
        ran = cli("whatif", "--trace", trace, "--arrivals", "gamma:02.50", "--rate", "20")
        fact = "gamma:2.5: gaps of coefficient of variation 2.5, 20 requests/s at 1x; order of the trace"
        assert f"\narrivals         {fact}\n" in ran.stdout


class TestTheTraffic:
    def test_copies_of_a_short_trace_are_laid_over_it(self, cli: Cli, trace: Path) -> None:
        ((_, requests, seconds),) = offered(cli("whatif", "--trace", trace, "--scale", "10", "--json"))
        assert requests == 600
        assert 29.5 < seconds <= 29.5 * 1.025, "each copy starts within a fortieth of the trace"

    def test_a_packed_file_is_told_by_its_content(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        packed = tmp_path / "packed" / "trace.csv"
        packed.parent.mkdir()
        packed.write_bytes(gzip.compress(trace.read_bytes()))
        plain = told(cli("whatif", "--trace", trace, "--json"))
        other = told(cli("whatif", "--trace", packed, "--json"))
        assert other["runs"] == plain["runs"]

    @pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
    def test_standard_input_is_read_once_for_as_many_runs_as_there_are(
        self, cli: Cli, trace: Path, pack: Callable[[bytes], bytes]
    ) -> None:
        ran = cli("whatif", "--trace", "-", "--scale", "1,2", "--json", stdin=pack(trace.read_bytes()))
        assert told(ran)["trace"]["file"] == "-"
        assert told(ran)["runs"] == told(cli("whatif", "--trace", trace, "--scale", "1,2", "--json"))["runs"]

    def test_a_pipe_is_read_as_a_file_is(self, trace: Path) -> None:
        command = f"{sys.executable} -m llmshed.commands whatif --trace <(cat {trace}) --scale 1,2 --json"
        ran = subprocess.run(["bash", "-c", command], check=True, capture_output=True)
        assert [run["report"]["requests"] for run in json.loads(ran.stdout)["runs"]] == [60, 120]

    @pytest.mark.parametrize(
        ("options", "requests"),
        [(("--limit", "7"), 7), (("--duration", "5"), 10), (("--duration", "5", "--limit", "3"), 3)],
    )
    def test_only_the_first_part_is_taken_if_asked(
        self, cli: Cli, trace: Path, options: tuple[str, ...], requests: int
    ) -> None:
        ran = cli("whatif", "--trace", trace, *options, "--json")
        assert told(ran)["trace"]["requests"] == told(ran)["runs"][0]["report"]["requests"] == requests

    def test_a_trace_of_two_files_is_named_by_its_first(self, cli: Cli, data_dir: Path) -> None:
        rates = data_dir / "traces/servegen_deepseek-r1_rates.csv.gz"
        answer = told(cli("whatif", "--trace", rates, "--duration", "5", "--json"))
        assert answer["trace"]["format"] == "servegen"
        assert answer["runs"][0]["report"]["requests"] == answer["trace"]["requests"] > 10

    def test_histograms_of_a_scrape_are_traffic_at_a_rate_that_is_given(self, cli: Cli, tmp_path: Path) -> None:
        scrape = tmp_path / "metrics.txt"
        lines = []
        for name in ("tgi_request_input_length", "tgi_request_generated_tokens"):
            lines += [f"# TYPE {name} histogram"]
            lines += [
                f'{name}_bucket{{le="{edge}"}} {count}' for edge, count in (("100", 40), ("200", 50), ("+Inf", 50))
            ]
            lines += [f"{name}_sum 4000", f"{name}_count 50"]
        scrape.write_text("\n".join(lines) + "\n")
        answer = told(cli("whatif", "--trace", scrape, "--rate", "10", "--json"))
        assert answer["trace"]["format"] == "prometheus"
        assert answer["trace"]["rate_per_second"] == pytest.approx(10, rel=0.5)

    def test_ceilings_decide_what_is_reserved(self, cli: Cli, trace: Path) -> None:
        def reserved(rule: str) -> float:
            ran = cli("whatif", "--trace", trace, "--ceiling", rule, "--json")
            assert told(ran)["ceiling"] == rule
            return float(told(ran)["runs"][0]["report"]["ledger"]["mean_reserved_tokens"])

        assert reserved("pow2") < reserved("asked") < reserved("flat1024")

    def test_tenants_of_the_trace_are_those_of_the_configuration_by_name(self, cli: Cli, tmp_path: Path) -> None:
        keys = tmp_path / "keys"
        keys.write_text("key-of-blue-000000000000000000000000\n")
        keys.chmod(0o600)
        config = write_config(tmp_path, 40_000)
        config.write_text(
            config.read_text() + '[[tenants]]\nname = "blue"\nkeys_file = "keys"\n'
            '[[tenants]]\nname = "red"\nkeys_file = "keys2"\n'
        )
        trace = tmp_path / "arena.csv"
        rows = (f"{number},{'red' if number % 3 else 'other'},100,20\n" for number in range(30))
        trace.write_text("arrival_s,tenant,prompt_len,output_len\n" + "".join(rows))
        ran = cli("whatif", "--trace", trace, "--config", config)
        assert ran.exit_code == 0, ran.stderr
        assert "2 in the trace; blue, red by name, all others as blue" in ran.stdout

    def test_refused_clients_come_back_as_their_kind_does(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        config = write_config(tmp_path, 2_000)
        tries = {
            kind: totals(
                cli("whatif", "--trace", trace, "--config", config, "--scale", "4", "--clients", kind, "--json")
            )[config.name, "ours", 4]["retries"]
            for kind in ("none", "sdk", "rude")
        }
        assert tries["none"] == 0 < tries["sdk"] < tries["rude"]

    def test_the_time_of_the_gateway_is_charged(self, cli: Cli, trace: Path) -> None:
        def waited(*options: str) -> float:
            ran = cli("whatif", "--trace", trace, "--json", *options)
            return float(told(ran)["runs"][0]["report"]["total"]["gate_wait_seconds"]["p50"])

        assert waited("--gateway-seconds", "0") < 0.001 < waited() < 0.1 <= waited("--gateway-seconds", "0.1")

    def test_a_gateway_that_relays_tokens_too_slowly_is_told_to_be_the_bottleneck(self, cli: Cli, trace: Path) -> None:
        def ran(*options: str) -> tuple[float, list[str]]:
            answer = told(cli("whatif", "--trace", trace, "--json", *options))
            return answer["runs"][0]["report"]["gateway_busy_share"], answer["warnings"]

        free, usual, slow = (ran("--gateway-token-seconds", one)[0] for one in ("0", "0.00009", "0.001"))
        assert 0 < free < usual < slow < 0.2
        assert ran()[0] == usual, "60 x (2 ms + 40 x 0.09 ms) and the prompts, in 29.5 s"
        assert usual == pytest.approx((60 * 0.002 + 60 * 40 * 0.000_09 + 27_000 * 0.000_001_5) / 29.5, rel=0.05)
        share, (warning,) = ran("--gateway-token-seconds", "0.1")
        assert share > 0.9
        assert warning.startswith("ours at 1x: the gateway's one process was busy 100.0 %")


def test_the_manual_lists_every_policy_and_every_kind_of_trace(repository: Path) -> None:
    page = (repository / "man/llmshed-whatif.1").read_text("utf-8")
    assert re.findall(r"^\.It Ql (\w+)$", page, flags=re.MULTILINE) == list(GATES)
    kinds = page[page.index("Kind of the trace:") : page.index("by default it is told by the first line")]
    assert set(re.findall(r"^\.Ql ([\w-]+)", kinds, flags=re.MULTILINE)) >= {kind.name for kind in FORMATS}


class TestLadders:
    """Of 20 requests a second the replica serves about ten."""

    @pytest.mark.slow
    def test_a_ladder_is_climbed_and_what_it_did_is_told(self, cli: Cli, tmp_path: Path) -> None:
        overload = tmp_path / "overload.csv"
        overload.write_text(azure(600, 0.05))
        quick = tmp_path / "quick.toml"
        quick.write_text(
            """
            schema = "llmshed.ladder/1"
            name = "quick"
            version = "1"
            [windows]
            window_seconds = 1.0
            [[rungs]]
            name = "cap"
            action = "cap_output"
            owner = "a"
            agreed_on = 2026-12-01
            largest_quality_gap = 0.1
            max_output_tokens = 16
            [[rungs]]
            name = "drop"
            action = "drop_enrichment"
            owner = "a"
            agreed_on = 2026-12-01
            largest_quality_gap = 0.1
            """
        )
        ran = cli("whatif", "--trace", overload, "--ladder", quick, "--json")
        use = told(ran)["runs"][0]["report"]["ladders"]
        (pool,) = use["pools"]
        assert (pool["ladder"], pool["climbs"] >= 1) == ("quick@1", True)
        assert pool["seconds_on_rung"][0] >= 2.0
        assert use["degraded"] > 0
        assert "rung drop changes nothing here" in " ".join(told(ran)["warnings"])
        shown = cli("whatif", "--trace", overload, "--ladder", quick)
        assert re.search(r"^ours, main +quick@1 +0: ", shown.stdout, re.MULTILINE)

    def test_off_leaves_ladders_out_and_what_does_not_suit_is_told(self, cli: Cli, trace: Path, tmp_path: Path) -> None:
        config = write_config(tmp_path, 40_000)
        config.write_text(config.read_text().replace("[[pools]]", '[[pools]]\nladder = "source"'))
        assert told(cli("whatif", "--trace", trace, "--config", config, "--json"))["runs"][0]["report"]["ladders"]
        off = told(cli("whatif", "--trace", trace, "--config", config, "--ladder", "off", "--json"))
        assert off["runs"][0]["report"]["ladders"] is None
        ran = cli("whatif", "--trace", trace, "--ladder", "full")
        assert (ran.exit_code, "there is no pool `small`" in ran.stderr) == (78, True)
