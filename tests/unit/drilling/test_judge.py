"""Checks that are made outside of this process: those that take forever, end it or leave children."""

import os
import sys
from asyncio.subprocess import Process
from pathlib import Path
from typing import Any

import pytest

from fakes.house import until
from llmshed.drilling.cases import Case
from llmshed.drilling.judge import Judge, UncheckableError, require_means

BOMB = {"regex": r"^(a+)+$"}
"""Takes 2^n steps of n letters that a `b` follows."""


def case(*checks: dict[str, Any]) -> Case:
    return Case.model_validate({"id": "c", "messages": [{"role": "user", "content": "q"}], "checks": checks})


def script(tmp_path: Path, text: str) -> dict[str, Any]:
    path = tmp_path / "scorer.py"
    path.write_text(text)
    return {"scorer": [sys.executable, "-S", str(path)]}


def child_of(judge: Judge) -> Process | None:
    return judge._child


async def test_a_case_is_worth_the_least_of_its_checks() -> None:
    async with Judge() as judge:
        both = case({"exact": "yes"}, {"exact": "YES", "ignore_case": True})
        assert await judge.result(both, "yes") == (1.0, None)
        assert await judge.result(both, "Yes") == (0.0, None)


@pytest.mark.slow
async def test_a_pattern_that_takes_forever_is_ended_and_the_next_check_is_made() -> None:
    async with Judge(check_seconds=0.5) as judge:
        result, error = await judge.result(case(BOMB), "a" * 60 + "b")
        assert (result, error) == (0.0, "a check took longer than 0.5 s")
        assert child_of(judge) is None
        judge._check_seconds = 30
        assert await judge.result(case({"regex": "a+b"}), "aab") == (1.0, None)
        child = child_of(judge)
        assert child is not None
        child.kill()
        await child.wait()
        assert (await judge.result(case({"regex": "a"}), "a"))[1] == "a check ended the process that makes it"
        assert await judge.result(case({"json_schema": {"$ref": "#/nowhere"}}), "1") != (1.0, None)
        assert await judge.result(case({"json_schema": {"type": "string"}}), '"a"') == (1.0, None)
        last = child_of(judge)
        assert last is not None
    assert last.returncode is not None


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("print(0.25)", (0.25, None)),
        ("import json, sys; print(float(json.load(sys.stdin)['answer'] == 'yes'))", (1.0, None)),
        ("print('nan')", "printed something other than a number from 0 to 1"),
        ("print(2)", "printed something other than a number from 0 to 1"),
        ("import sys; sys.exit(3)", "ended with 3"),
    ],
)
async def test_a_scorer_prints_what_an_answer_is_worth(printed: str, told: Any, tmp_path: Path) -> None:
    async with Judge() as judge:
        result, error = await judge.result(case(script(tmp_path, printed)), "yes")
    if isinstance(told, str):
        assert result == 0.0
        assert error is not None
        assert error.endswith(told)
    else:
        assert (result, error) == told


@pytest.mark.slow
async def test_a_scorer_that_does_not_end_is_ended_with_what_it_started(tmp_path: Path) -> None:
    started = tmp_path / "child"
    text = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(started)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)"
    )
    async with Judge(scorer_seconds=1.0) as judge:
        result, error = await judge.result(case(script(tmp_path, text)), "yes")
    assert (result, str(error).partition(": ")[2]) == (0.0, "took longer than 1 s")
    pid = int(started.read_text())
    await until(lambda: _is_gone(pid))


def _is_gone(pid: int) -> bool:
    """Say whether a process has ended; one that nobody waited for yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def test_a_scorer_that_is_not_there_is_told() -> None:
    async with Judge() as judge:
        result, error = await judge.result(case({"scorer": ["/nowhere/at-all"]}), "yes")
    assert (result, error) == (0.0, f"scorer /nowhere/at-all: cannot be run: {os.strerror(2)}")


def test_programs_run_only_by_leave_and_schemas_need_their_library(monkeypatch: pytest.MonkeyPatch) -> None:
    scored, schema = case({"scorer": ["true"]}), case({"json_schema": {}})
    with pytest.raises(UncheckableError, match="--allow-commands"):
        require_means([case({"exact": "a"}), scored], allow_commands=False)
    require_means([scored], allow_commands=True)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UncheckableError, match=r"llmshed\[drill\]"):
        require_means([schema], allow_commands=False)
    require_means([case({"regex": "a"})], allow_commands=False)
