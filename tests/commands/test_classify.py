"""`llmshed classify` without a gateway; the one with a gateway is in tests/integration."""

import json
from pathlib import Path

import pytest

from conftest import Cli

OK, BULK, OVERFLOW, USAGE, BAD_DATA, NO_INPUT, UNAVAILABLE, CONFIG = 0, 10, 11, 64, 65, 66, 69, 78


@pytest.fixture
def worked_example(repository: Path) -> list[str]:
    profile = repository / "profiles" / "examples" / "worked-example.toml"
    return ["--profile", str(profile), "--active", "58000", "--queued", "8000"]


@pytest.mark.parametrize(
    ("input_tokens", "reserved", "fits", "verdict", "reason", "status"),
    [
        (14_000, 18_000, True, "admit", None, 200),
        (19_000, 23_000, False, "refuse", "token_budget_exhausted", 429),
        (200_000, 204_000, False, "refuse", "context_limit", 413),
    ],
)
def test_the_worked_example_of_the_source_text(
    cli: Cli,
    worked_example: list[str],
    input_tokens: int,
    reserved: int,
    fits: bool,  # noqa: FBT001 - a column of the table
    verdict: str,
    reason: str | None,
    status: int,
) -> None:
    ran = cli("classify", "--input-tokens", str(input_tokens), "--max-output", "4000", *worked_example, "--json")
    assert ran.exit_code == OK, ran.stderr
    got = ran.json()
    assert got["schema"] == "llmshed.classify/1"
    assert got["reservation_tokens"] == reserved
    assert got["equation"]["headroom_tokens"] == 20_400
    assert (got["fits"], got["verdict"], got["reason"], got["status"]) == (fits, verdict, reason, status)


def test_for_people_the_equation_is_a_sentence(cli: Cli, worked_example: list[str]) -> None:
    ran = cli("classify", "--input-tokens", "19000", "--max-output", "4000", *worked_example, env={"COLUMNS": "200"})
    assert "refuse (token_budget_exhausted)" in ran.stdout
    assert "96,000 gross - 9,600 guard - 58,000 active - 8,000 queued = 20,400 free tokens" in ran.stdout


def test_what_was_weighed_has_a_row_and_what_nobody_knows_has_none(cli: Cli, worked_example: list[str]) -> None:
    ran = cli("classify", "--input-tokens", "14000", "--max-output", "4000", *worked_example)
    rows = {line[:15].strip(): line[15:].strip() for line in ran.stdout.splitlines()}
    assert rows["prefill window"].endswith("in flight")
    assert not {"queue", "wait", "work ahead"} & set(rows)
    told = cli("classify", "--input-tokens", "14000", "--max-output", "4000", *worked_example, "--json").json()
    assert told["window"]["inflight_tokens"] == 0
    assert told["queue"] is told["delay"] is None


@pytest.mark.parametrize(
    ("arguments", "lane", "code"),
    [
        (["--input-tokens", "4096", "--max-output", "1024"], "interactive", OK),
        (["--input-tokens", "4097", "--max-output", "1024"], "bulk", BULK),
        (["--input-tokens", "10", "--intent", "bulk"], "bulk", BULK),
        (["--input-tokens", "200000"], "bulk", OVERFLOW),  # larger than the model holds
    ],
)
def test_the_lane_by_exit_status(
    cli: Cli, worked_example: list[str], arguments: list[str], lane: str, code: int
) -> None:
    ran = cli("classify", *arguments, *worked_example, "--exit-status", "--json")
    assert (ran.json()["lane"], ran.exit_code) == (lane, code)


def test_overflow_by_the_thresholds_of_a_configuration(cli: Cli, worked_example: list[str], tmp_path: Path) -> None:
    config = tmp_path / "llmshed.toml"
    config.write_text(
        '[lanes.bulk]\nmax_input_tokens = 10_000\n[[pools]]\nreplicas = [{ name = "r1", url = "simulated:" }]\n'
    )
    ran = cli("classify", "--input-tokens", "10001", *worked_example, "--config", config, "--exit-status", "--json")
    got = ran.json()
    assert (got["lane"], got["reason"], ran.exit_code) == ("overflow", "lane_limit", OVERFLOW)
    assert got["advice"] == ["summarise", "split", "dedicated_pool"]


def test_a_prompt_is_counted(cli: Cli, worked_example: list[str]) -> None:
    short = cli("classify", "Why is the sky blue?", *worked_example, "--json").json()
    piped = cli("classify", "-", *worked_example, "--json", stdin="Why is the sky blue?").json()
    assert 3 <= short["input_tokens"] <= 20
    assert piped == short
    assert short["output_ceiling_tokens"] == 512


def test_a_chat_request_is_counted_with_its_own_wishes(cli: Cli, worked_example: list[str]) -> None:
    body = {
        "messages": [{"role": "user", "content": "Why is the sky blue?"}],
        "max_tokens": 77,
        "n": 3,
        "service_tier": "flex",
    }
    got = cli("classify", "--request", "-", *worked_example, "--json", stdin=json.dumps(body)).json()
    assert (got["lane"], got["output_ceiling_tokens"], got["reservation"]["sequences"]) == ("bulk", 77, 3)
    assert got["reservation_tokens"] == got["input_tokens"] + 3 * 77
    narrowed = cli("classify", "-r", "-", "--max-output", "5", *worked_example, "--json", stdin=json.dumps(body)).json()
    assert narrowed["output_ceiling_tokens"] == 5


def test_without_a_profile_the_simulated_replica_stands_in_and_says_so(cli: Cli) -> None:
    ran = cli("classify", "--input-tokens", "10", "--json")
    assert ran.exit_code == OK
    assert "no --profile" in ran.stderr
    assert ran.json()["profile"].startswith("simulated")


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "said"),
    [
        ([], "", USAGE, "exactly one of PROMPT"),
        (["hello", "--input-tokens", "3"], "", USAGE, "exactly one of PROMPT"),
        (["--input-tokens", "-1"], "", USAGE, "--input-tokens"),
        (["--input-tokens", "many"], "", USAGE, "--input-tokens"),
        (["--input-tokens", "3", "--max-output", "0"], "", USAGE, "--max-output"),
        (["--input-tokens", "3", "--intent", "urgent"], "", USAGE, "interactive"),
        (["--request", "/no/such/file"], "", NO_INPUT, "/no/such/file"),
        (["--request", "-"], "{", BAD_DATA, ""),
        (["--request", "-"], '{"inputs": "a", "inputs": "b"}', BAD_DATA, "inputs"),
        (["--request", "-"], '{"input": "a"}', BAD_DATA, "messages, prompt and inputs"),
        (["--request", "-"], '{"inputs": "a", "parameters": {"max_new_tokens": 0}}', BAD_DATA, "max_new_tokens"),
        (["hello", "--tokenizer", "/no/such/dir"], "", NO_INPUT, "/no/such/dir"),
        (["--input-tokens", "3", "--profile", "/no/such/profile.toml"], "", CONFIG, "/no/such/profile.toml"),
        (["--input-tokens", "3", "--gateway", "http://127.0.0.1:1"], "", UNAVAILABLE, "http://127.0.0.1:1"),
        (["--input-tokens", "3", "--gateway", "ftp://here"], "", USAGE, "ftp://here"),
        (["--input-tokens", "3", "--gateway", "http://127.0.0.1:1?a"], "", USAGE, "without ? and #"),
        (["--input-tokens", "3", "--gateway", "a:1", "--token-file", "/no/such/file"], "", NO_INPUT, "/no/such/file"),
        (["--input-tokens", "3", "--gateway", "a:1", "--active", "0"], "", USAGE, "--active does not go with"),
        (["--input-tokens", "3", "--gateway", "a:1", "--profile", "p"], "", USAGE, "--profile does not go with"),
        (["--input-tokens", "3", "--gateway", "a:1", "-c", "c"], "", USAGE, "--config does not go with"),
        (["--input-tokens", "3", "--gateway", "a:1", "--tokenizer", "t"], "", USAGE, "--tokenizer does not go with"),
        (["--input-tokens", "3", "--tenant", "acme"], "", USAGE, "--tenant belongs to --gateway"),
        (["--input-tokens", "3", "--token-file", "f"], "", USAGE, "--token-file belongs to --gateway"),
        (["--request", "-"], "5", BAD_DATA, "standard input: the body is a number"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(cli: Cli, arguments: list[str], stdin: str, code: int, said: str) -> None:
    ran = cli("classify", *arguments, stdin=stdin)
    assert ran.exit_code == code, ran.stderr
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


def test_a_password_in_the_address_of_a_gateway_is_refused_and_not_repeated(cli: Cli) -> None:
    ran = cli("classify", "--input-tokens", "3", "--gateway", "http://operator:hush@127.0.0.1:1")
    assert (ran.exit_code, ran.stdout) == (USAGE, "")
    assert "an address without a user is needed" in ran.stderr
    assert "hush" not in ran.stderr
