"""`llmshed ladder drill` against a gateway whose answers on each path are chosen here."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from fakes.drilled import TERMS, WORD, DrilledGateway, Said, Sent, drilled_gateway

CAPITALS = {"France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Peru": "Lima"}


def case(land: str, **more: Any) -> dict[str, Any]:
    return {
        "id": land,
        "messages": [{"role": "user", "content": f"Capital of {land}?"}],
        "checks": [{"exact": CAPITALS[land]}],
    } | more


def right(sent: Sent) -> str:
    return next(capital for land, capital in CAPITALS.items() if land in sent.question)


def small_is_half_right(sent: Sent) -> Said:
    """Answer rightly, but wrongly of two lands on the path to the smaller model."""
    smaller = sent.rung == "smaller"
    text = "no idea" if smaller and right(sent) in {"Lima", "Rome"} else right(sent)
    headers = {"x-llmshed-model": "s" if smaller else "m"}
    if sent.rung != "none":
        headers["x-llmshed-degraded"] = "cap_output,smaller_model" if smaller else "cap_output"
    return Said(text, headers=headers)


@pytest.fixture
def gateway() -> Iterator[DrilledGateway]:
    with drilled_gateway(small_is_half_right) as served:
        yield served


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(case(land)) for land in CAPITALS) + "\n")
    return path


def test_each_case_takes_each_path_by_the_pass_and_the_results_are_kept(
    cli: Cli, gateway: DrilledGateway, cases: Path, tmp_path: Path
) -> None:
    gateway.terms["evaluations"] = str(kept := tmp_path / "evaluations.json")
    token, key = tmp_path / "token", tmp_path / "key"
    token.write_text("admin\n")
    key.write_text("customer\n")
    rows = tmp_path / "rows.jsonl"
    ran = cli(
        "ladder", "drill", "--set", cases, "--gateway", gateway.url, "--token-file", token, "--key-file", key,
        "--cases-out", rows, "--concurrency", "2", "--yes",
    )  # fmt: skip
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert gateway.asked == [{"authorization": "Bearer admin"}] * 2
    sent = sorted((one.rung, right(one)) for one in gateway.sent)
    assert sent == sorted((rung, city) for rung in ("none", "short", "smaller") for city in CAPITALS.values())
    assert {one.headers["x-llmshed-drill"] for one in gateway.sent} == {WORD}
    assert {one.headers["authorization"] for one in gateway.sent} == {"Bearer customer"}
    assert {one.body["model"] for one in gateway.sent} == {"m"}
    (drill,) = json.loads(kept.read_text())["drills"]
    primary, short, smaller = drill["paths"]
    assert [path["result"]["value"] for path in drill["paths"]] == [1.0, 1.0, 0.5]
    assert (primary["gap"], short["gap"]["value"], smaller["gap"]["value"]) == (None, 0.0, 0.5)
    assert (short["changed"], smaller["model"], smaller["facts"]) == (4, "s", {"model_id": "s"})
    assert (primary["input_tokens"], primary["output_tokens"]) == (40, 4)
    assert primary["ttft_seconds"] <= primary["latency_seconds"]
    told = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [(row["case"], row["rung"], row["result"]) for row in told[-3:]] == [
        ("Peru", None, 1.0), ("Peru", "short", 1.0), ("Peru", "smaller", 0.0),
    ]  # fmt: skip
    assert "Paris" not in rows.read_text() + kept.read_text()
    assert "within" in ran.stdout
    assert "Fewer than 30 cases tell little." in ran.stdout


def test_a_path_that_loses_more_than_was_agreed_on_ends_with_78(
    cli: Cli, gateway: DrilledGateway, cases: Path, tmp_path: Path
) -> None:
    gateway.terms["rungs"] = [*TERMS["rungs"][:1], TERMS["rungs"][1] | {"largest_quality_gap": 0.4}]
    arguments = ("ladder", "drill", "--set", cases, "--gateway", gateway.url, "--yes")
    ran = cli(*arguments, "--output", tmp_path / "kept.json")
    assert ran.exit_code == 78
    assert "beyond" in ran.stdout
    ran = cli(*arguments, "--rung", "short")
    assert ran.exit_code == 0
    assert "nothing is kept" in ran.stderr
    gateway.terms["rungs"] = [*TERMS["rungs"][:1], TERMS["rungs"][1] | {"largest_quality_gap": None}]
    ran = cli(*arguments)
    assert ran.exit_code == 0
    assert "nothing agreed" in ran.stdout


def test_the_trend_shows_earlier_drills_and_marks_those_by_other_cases(
    cli: Cli, gateway: DrilledGateway, cases: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.json"
    arguments = ("ladder", "drill", "--gateway", gateway.url, "--output", kept)
    cli(*arguments, "--set", cases, "--yes")
    cases.write_text(json.dumps(case("France")))
    ran = cli(*arguments, "--set", cases, "--yes")
    assert "50.0%*" in ran.stdout
    assert "* by another set of cases" in ran.stdout
    before = len(gateway.sent)
    shown = cli(*arguments, "--show", "--json").json()
    assert shown["schema"] == "llmshed.drills/1"
    assert [drill["paths"][2]["gap"]["value"] for drill in shown["drills"]] == [0.0, 0.5]
    assert cli(*arguments, "--show").stdout == ran.stdout
    assert len(gateway.sent) == before


def test_what_a_degraded_path_refuses_is_worth_nothing_and_what_is_busy_has_no_result(
    cli: Cli, gateway: DrilledGateway, cases: Path, tmp_path: Path
) -> None:
    def says(sent: Sent) -> Said:
        if sent.rung == "short":
            return Said(status=429, headers={"retry-after": "0", "x-llmshed-reason": "token_budget_exhausted"})
        if sent.rung == "smaller" and "Peru" in sent.question:
            return Said(status=413, headers={"x-llmshed-reason": "context_limit", "x-llmshed-degraded": "cap_output"})
        return Said(right(sent))

    gateway.says = says
    rows = tmp_path / "rows.jsonl"
    ran = cli("ladder", "drill", "--set", cases, "--gateway", gateway.url, "--yes", "--cases-out", rows, "--json")
    assert ran.exit_code == 12
    _, short, smaller = ran.json()["drills"][0]["paths"]
    assert (short["answered"], short["result"], short["gap"]) == (0, None, None)
    assert (smaller["answered"], smaller["result"]["value"]) == (4, 0.75)
    told = [json.loads(line) for line in rows.read_text().splitlines()]
    assert {row["error"] for row in told if row["rung"] == "short"} == {"token_budget_exhausted"}
    assert [row["error"] for row in told if row["result"] == 0.0] == ["context_limit"]
    assert sum(one.rung == "short" for one in gateway.sent) == 4 * 4  # each tried four times


def test_an_answer_of_another_path_is_no_result(cli: Cli, gateway: DrilledGateway, cases: Path, tmp_path: Path) -> None:
    def says(sent: Sent) -> Said:
        degraded = {"x-llmshed-degraded": "cap_output"} if sent.rung == "none" else {}
        return Said(right(sent), headers={"x-llmshed-model": "m", **degraded})

    gateway.says = says
    rows = tmp_path / "rows.jsonl"
    ran = cli("ladder", "drill", "--set", cases, "--gateway", gateway.url, "--yes", "--cases-out", rows)
    assert ran.exit_code == 12
    told = [json.loads(line) for line in rows.read_text().splitlines()]
    assert {(row["rung"], row["error"]) for row in told} == {
        (None, "the gateway did cap_output beside what was asked for: the pool is degraded now"),
        ("short", None),
        ("smaller", "m answered, and not s"),
    }


def test_a_stream_that_breaks_is_worth_nothing(cli: Cli, gateway: DrilledGateway, cases: Path, tmp_path: Path) -> None:
    gateway.says = lambda sent: Said(right(sent), cut=sent.rung == "short")
    rows = tmp_path / "rows.jsonl"
    ran = cli("ladder", "drill", "--set", cases, "--gateway", gateway.url, "--yes", "--cases-out", rows)
    assert ran.exit_code == 78
    errors = {row["error"] for row in map(json.loads, rows.read_text().splitlines()) if row["rung"] == "short"}
    assert errors == {"the stream ended before its end was told"}


NAMED = b'{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"find","arguments":"{\\"a"}}]}}]}'
REST = b'{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\":1}"}}]},"finish_reason":"stop"}]}'
STOP = b'{"choices":[{"delta":{"content":"Paris"},"finish_reason":"stop"}]}'


@pytest.mark.parametrize(
    ("events", "result", "error"),
    [
        ((NAMED, REST), 1.0, None),
        ((b'{"choices":[],"usage":{"prompt_tokens":-1}}', b"[]", b'{"choices":null}', STOP), 0.0, None),
        ((b"{", STOP), 0.0, "the stream is not that of a chat"),
        ((b'{"choices":[1]}', STOP), 0.0, "the stream is not that of a chat"),
        ((b'{"error":{"message":"out of\\nmemory"}}',), 0.0, "out of memory"),
    ],
)
def test_whatever_an_engine_sends_is_an_answer_or_told(
    cli: Cli, gateway: DrilledGateway, tmp_path: Path, events: tuple[bytes, ...], result: float, error: str | None
) -> None:
    gateway.says = lambda _: Said(events=events)
    cases, rows = tmp_path / "cases.jsonl", tmp_path / "rows.jsonl"
    cases.write_text(json.dumps(case("France", checks=[{"exact": '[{"name":"find","arguments":"{\\"a\\":1}"}]'}])))
    cli(
        "ladder", "drill", "--set", cases, "--gateway", gateway.url, "--yes", "--rung", "short", "--cases-out", rows,
    )  # fmt: skip
    row, _ = map(json.loads, rows.read_text().splitlines())
    assert (row["result"], row["error"]) == (result, error)


def test_a_model_that_was_replaced_meanwhile_leaves_no_result(
    cli: Cli, gateway: DrilledGateway, cases: Path, tmp_path: Path
) -> None:
    def says(sent: Sent) -> Said:
        gateway.terms["pools"] = TERMS["pools"] | {"main": {"model": "m", "facts": {"model_id": "other"}}}
        return Said(right(sent))

    gateway.says = says
    ran = cli("ladder", "drill", "--set", cases, "--gateway", gateway.url, "--yes", "--output", tmp_path / "kept")
    assert ran.exit_code == 75
    assert not (tmp_path / "kept").exists()


def test_who_is_turned_away_learns_it_once(cli: Cli, gateway: DrilledGateway, cases: Path) -> None:
    gateway.says = lambda _: Said(status=401, headers={"x-llmshed-reason": "unauthenticated"})
    ran = cli("ladder", "drill", "--set", cases, "--gateway", gateway.url, "--yes")
    assert (ran.exit_code, ran.stderr.splitlines()[-1]) == (
        77, f"llmshed: {gateway.url} answered 401: unauthenticated",
    )  # fmt: skip


def test_nothing_is_sent_without_leave_and_nothing_written_over(
    cli: Cli, gateway: DrilledGateway, cases: Path, tmp_path: Path
) -> None:
    arguments = ("ladder", "drill", "--set", cases, "--gateway", gateway.url)
    ran = cli(*arguments)
    assert ran.exit_code == 64
    assert "--yes" in ran.stderr
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    assert cli(*arguments, "--yes", "--output", other).exit_code == 65
    assert other.read_text() == "mine"
    assert cli(*arguments, "--yes", "--output", tmp_path / "none" / "file").exit_code == 74
    assert gateway.sent == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 64, "either --set FILE or --show"),
        (("--set", "x", "--show"), 64, "either --set FILE or --show"),
        (("--set", "none.jsonl"), 66, "none.jsonl"),
        (("--show", "--rung", "tiny"), 65, "`short`, `smaller`"),
    ],
)
def test_mistakes_of_the_command_line_are_told(
    cli: Cli, gateway: DrilledGateway, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ran = cli("ladder", "drill", "--gateway", gateway.url, *arguments)
    assert ran.exit_code == code
    assert words in " ".join(ran.stderr.replace("│", " ").split())


def test_a_ladder_that_changes_no_answer_has_nothing_to_drill(cli: Cli, gateway: DrilledGateway, cases: Path) -> None:
    gateway.terms["rungs"] = []
    ran = cli("ladder", "drill", "--gateway", gateway.url, "--set", cases, "--yes")
    assert (ran.exit_code, gateway.sent) == (65, [])
    assert "nothing to drill" in ran.stderr
