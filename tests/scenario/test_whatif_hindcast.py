"""A log of virtual time before its own traffic: what is right is foretold, what is wrong is found out."""

import random
from collections.abc import Iterable
from dataclasses import replace
from math import inf

import pytest

from fakes.hindcasts import config_text, too_much, virtual_log
from llmshed.admission.request import Lane
from llmshed.config.loading import load_config
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.whatif.hindcast import Hindcast, hindcast, mean_figures
from llmshed.whatif.logged_figures import logged_figures, simulated_figures
from llmshed.whatif.setting import Objectives
from llmshed.whatif.staging import build_controller, setting_from
from llmshed.whatif.world import RunPlan, simulate
from llmshed.workload.clients import ClientModel
from llmshed.workload.readers.decision_log import read_decision_log, read_logged
from llmshed.workload.readers.reading import Reading

SECONDS = 60.0


@pytest.fixture(scope="module")
def log() -> list[bytes]:
    return virtual_log(too_much(SECONDS, 24.0))


def foretold(log: Iterable[bytes], factor: float = 1.0, ceiling_tokens: int = 12_000, number: int = 1) -> Hindcast:
    """Return the hindcast with step times multiplied, in the mean of so many draws of unknown lengths."""
    lines = list(log)
    text = config_text(("http://10.0.0.7:8080", "http://10.0.0.8:8080"), ceiling_tokens)
    config = load_config(text, "llmshed.toml", {}, {}).config
    times = StepTimes(
        0.0075 * factor, 0.000_2 * factor, 0.000_75 * factor, 0.0375 * factor, seconds_per_sequence=0.000_03 * factor
    )
    parameters = ReplicaParameters(version="3.0.1", kv_tokens=12_000, max_batch_prefill_tokens=8192, step_times=times)
    draws = []
    last = 0.0
    for seed in range(number):
        reading = Reading(random.Random(seed))  # noqa: S311 - one draw
        traffic = list(read_decision_log(lines, reading))
        last = traffic[-1].at_seconds
        setting = setting_from(config, {}, parameters, {"main": 2})
        setting = replace(setting, objectives=Objectives(dict.fromkeys(Lane, inf)))
        rng = random.Random(seed)  # noqa: S311 - jitter of one run
        report = simulate(setting, build_controller(setting), traffic, ClientModel.NONE, rng, RunPlan((100, 200, 300)))
        draws.append(simulated_figures(report))
    return hindcast(logged_figures(read_logged(lines), last), mean_figures(draws), len(draws))


@pytest.mark.slow
def test_the_log_of_an_overload_is_foretold_in_both_lanes(log: list[bytes]) -> None:
    told = foretold(log, number=2)
    assert set(told.logged) == {Lane.INTERACTIVE, Lane.BULK}
    assert all(lane.refused_share > 0.1 for lane in told.logged.values()), "without refusals it proves little"
    assert told.holds, told.rows


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.4, 0.6])
def test_step_times_that_are_wrong_by_forty_percent_are_found_out(log: list[bytes], factor: float) -> None:
    assert not foretold(log, factor).holds


@pytest.mark.slow
def test_another_budget_than_that_of_the_log_is_found_out(log: list[bytes]) -> None:
    assert not foretold(log, ceiling_tokens=8_000).holds


def test_a_log_without_refusals_is_foretold_to_the_digit() -> None:
    told = foretold(virtual_log(too_much(60.0, 4.0)))
    assert told.logged[Lane.INTERACTIVE].refused_share == 0.0
    assert told.largest_difference is not None
    assert told.largest_difference < 0.02
