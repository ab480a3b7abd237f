"""TTFT objectives by input, against the step times."""

import pytest

from fakes.knocks import work
from fakes.stages import GPU, stage
from llmshed.whatif.gates.objectives import TtftObjectives


def test_the_objective_is_five_times_the_idle_ttft_but_never_below_a_second() -> None:
    setting = stage()
    objectives = TtftObjectives(setting)
    assert objectives.of_work(work(setting, input_tokens=100)) == 1.0
    idle = 4000 / 10_000 + 0.01
    assert objectives.idle_seconds(4000) == pytest.approx(idle, rel=0.01)
    assert objectives.of_work(work(setting, input_tokens=4000)) == pytest.approx(5 * idle, rel=0.01)


def test_each_length_is_tried_once() -> None:
    built = []

    def build() -> object:
        built.append(1)
        return stage().build_model()

    objectives = TtftObjectives(stage(build_model=build))
    assert objectives.idle_seconds(500) == objectives.idle_seconds(500)
    assert len(built) == 1


def test_what_no_replica_takes_has_no_idle_time() -> None:
    assert TtftObjectives(stage()).idle_seconds(GPU.max_input_tokens + 1) == 0.0
