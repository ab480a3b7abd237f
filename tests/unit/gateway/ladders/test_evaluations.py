import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.drills import drill_record, path_record
from fakes.house import until
from fakes.rungs import cap, ladder_of, pool_on
from llmshed.admission.policy import PoolPolicy
from llmshed.gateway.ladders import evaluations as module
from llmshed.gateway.ladders.evaluations import Evaluations, watch_evaluations
from llmshed.ladder.records import MOST_BYTES, NO_DRILLS, DrillFile
from llmshed.ladder.staleness import Why
from llmshed.profile.comparison import Facts

NOW: dict[str, Facts] = {"main": {"model_id": "m", "model_revision": "1"}}
CAPPED = path_record("r2", ("cap_output 400",))
DRILLED = NO_DRILLS.with_newest(drill_record(CAPPED))


def pool_at(path: Path | None) -> PoolPolicy:
    ladder = ladder_of({"action": "stop_bulk"}, cap(400, largest_quality_gap=0.1))
    return pool_on(ladder.model_copy(update={"evaluations": None if path is None else str(path)}))


def write(path: Path, file: DrillFile) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(file.model_dump_json(by_alias=True), "utf-8")
    beside.replace(path)


def whys(evaluations: Evaluations, pool: str = "main") -> list[tuple[str, Why]]:
    return [(one.rung, one.why) for one in evaluations.stale(pool)]


@pytest.fixture
def facts() -> dict[str, Facts]:
    return dict(NOW)


@pytest.fixture
def evaluations(facts: Mapping[str, Facts]) -> Evaluations:
    return Evaluations(lambda pool: facts.get(pool, {}))


async def test_what_was_drilled_holds_until_the_replica_is_another_one(
    evaluations: Evaluations, facts: dict[str, Facts], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "llmshed")
    pool = pool_at(path := tmp_path / "evaluations.json")
    assert whys(evaluations) == []  # nothing was looked at
    await evaluations.look([pool])
    assert whys(evaluations) == [("r2", Why.MISSING)]
    write(path, DRILLED)
    await evaluations.look([pool])
    assert whys(evaluations) == []
    facts["main"] = {"model_id": "m", "model_revision": "2"}
    for _ in range(3):
        await evaluations.look([pool])
        assert whys(evaluations) == [("r2", Why.PRIMARY_CHANGED)]
    told = [(record.message, record.__dict__["why"]) for record in caplog.records]
    assert told == [
        ("ladder_evaluation_stale", Why.MISSING),
        ("ladder_evaluation_holds_again", Why.MISSING),
        ("ladder_evaluation_stale", Why.PRIMARY_CHANGED),
    ]
    assert caplog.records[-1].__dict__["detail"] == "pool main: model_revision is 2, and was 1"


@pytest.mark.parametrize("content", ["", "{", '{"schema": "llmshed.ladder/1"}', "\0", "x" * (MOST_BYTES + 1)])
async def test_a_file_that_is_none_of_ours_is_told_of(evaluations: Evaluations, tmp_path: Path, content: str) -> None:
    path = tmp_path / "evaluations.json"
    path.write_text(content)
    await evaluations.look([pool_at(path)])
    (one,) = evaluations.stale("main")
    assert one.why is Why.UNREADABLE
    assert str(path) in one.detail


async def test_a_directory_and_a_closed_file_are_told_of(evaluations: Evaluations, tmp_path: Path) -> None:
    await evaluations.look([pool_at(tmp_path)])
    assert whys(evaluations) == [("r2", Why.UNREADABLE)]


async def test_a_file_is_read_when_it_is_another_one_and_only_then(
    evaluations: Evaluations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []
    true_read = DrillFile.model_validate_json

    def reading(text: bytes) -> DrillFile:
        read.append(text)
        return true_read(text)

    monkeypatch.setattr(DrillFile, "model_validate_json", reading)
    pool = pool_at(path := tmp_path / "evaluations.json")
    write(path, DRILLED)
    for _ in range(3):
        await evaluations.look([pool, replace(pool, name="other")])
    assert len(read) == 1
    write(path, NO_DRILLS)
    os.utime(path, ns=(1, 1))
    await evaluations.look([pool])
    assert len(read) == 2
    assert whys(evaluations) == [("r2", Why.MISSING)]


async def test_a_ladder_without_a_file_was_never_drilled_and_none_without_changed_answers_is_stale(
    evaluations: Evaluations,
) -> None:
    await evaluations.look([pool_at(None), pool_on(ladder_of({"action": "stop_bulk"}), "bulk"), pool_on(None, "plain")])
    assert (whys(evaluations), whys(evaluations, "bulk"), whys(evaluations, "plain")) == (
        [("r2", Why.MISSING)],
        [],
        [],
    )


async def test_a_pool_that_loses_its_ladder_is_stale_no_longer(evaluations: Evaluations) -> None:
    await evaluations.look([pool_at(None)])
    await evaluations.look([pool_on(None)])
    assert whys(evaluations) == []


async def test_it_is_looked_at_again_and_again(
    evaluations: Evaluations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.001)
    pools = [pool_at(tmp_path / "evaluations.json")]
    watching = asyncio.ensure_future(watch_evaluations(evaluations, lambda: pools))
    await until(lambda: whys(evaluations))
    write(tmp_path / "evaluations.json", DRILLED)
    await until(lambda: not whys(evaluations))
    watching.cancel()
