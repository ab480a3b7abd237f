import re
from dataclasses import replace

import pytest

from fakes.whatif_runs import NOTHING, part, report, run
from llmshed.whatif.compare import MEASURES, Change, Unit, difference, mean


def changes(base_good: int, against_good: int) -> dict[str, Change]:
    told = difference(run(total=part(base_good)), run(total=part(against_good), configuration="b.toml"))
    return {change.measure.name: change for change in told.changes}


def test_a_rate_changes_relative_to_the_base() -> None:
    change = changes(800, 900)["goodput_tokens_per_second"]
    assert (change.base, change.against, change.change) == (2000.0, 2250.0, 0.125)


def test_a_share_changes_by_points() -> None:
    assert changes(800, 900)["attainment"].change == pytest.approx(0.1)


def test_tries_of_all_reasons_are_counted_together() -> None:
    told = difference(run(total=part(refusals={"queue_full": 3, "lane_limit": 5})), run(total=part(refusals={})))
    change = {change.measure.name: change for change in told.changes}["refused_tries"]
    assert (change.base, change.against, change.change) == (8.0, 0.0, -1.0)


def test_from_nothing_no_change_is_told() -> None:
    change = changes(0, 900)["goodput_tokens_per_second"]
    assert (change.base, change.against, change.change) == (0.0, 2250.0, None)


def test_what_one_side_did_not_measure_has_no_change() -> None:
    told = difference(run(), run(total=part(ttft_seconds=NOTHING)))
    change = {change.measure.name: change for change in told.changes}["ttft_p95_seconds"]
    assert change.base is not None
    assert (change.against, change.change) == (None, None)


def test_a_difference_names_both_configurations_and_what_was_run() -> None:
    told = difference(run("none", 5), run("none", 5, configuration="b.toml"))
    assert (told.policy, told.scale, told.base, told.against) == ("none", 5, "a.toml", "b.toml")
    assert [change.measure for change in told.changes] == list(MEASURES)


def test_equal_runs_change_nothing() -> None:
    assert {change.change for change in difference(run(), run()).changes} == {0.0}


def test_every_measure_has_a_key_of_its_own_that_tells_its_unit() -> None:
    names = [measure.name for measure in MEASURES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]+", name) for name in names)
    assert {m.name for m in MEASURES if m.unit is Unit.SECONDS} == {n for n in names if n.endswith("_seconds")}
    assert {m.name for m in MEASURES if m.unit is Unit.PER_SECOND} == {n for n in names if n.endswith("_per_second")}


def test_replicas_are_compared_in_the_mean() -> None:
    by_name = {measure.name: measure for measure in MEASURES}
    assert by_name["busy_share"].of(report()) == pytest.approx(0.7)
    assert by_name["busy_share"].of(replace(report(), replicas=())) is None


def test_the_mean_of_nothing_is_unknown() -> None:
    assert mean(()) is None
    assert mean((1.0, 2.0)) == 1.5
