"""From traced requests to visits."""

from dataclasses import replace

import pytest

from fakes.stages import EDGES, ONE_POOL, stage, traced
from llmshed.admission.request import Intent, Lane, PriorityClass
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.whatif.door import Door, quartile_of
from llmshed.whatif.setting import Objectives
from llmshed.whatif.visits import Try


@pytest.mark.parametrize(
    ("input_tokens", "quartile"), [(1, 1), (100, 1), (101, 2), (1000, 2), (1001, 3), (2000, 3), (2001, 4), (10**8, 4)]
)
def test_an_edge_belongs_to_the_quartile_below_it(input_tokens: int, quartile: int) -> None:
    assert quartile_of(input_tokens, EDGES) == quartile


def test_one_that_goes_back_in_time_first_comes_with_the_one_before_it() -> None:
    door = Door(stage(), EDGES)
    assert [door.visit(traced(at), 7.0).traced.at_seconds for at in (3.0, 7.0)] == [7.0, 7.0]


def test_equal_edges_leave_quartiles_empty_and_lose_nobody() -> None:
    assert [quartile_of(tokens, (5, 5, 5)) for tokens in (4, 5, 6)] == [1, 1, 4]


def test_a_visit_knows_its_objectives_from_an_idle_replica() -> None:
    small = Door(stage(), EDGES).visit(traced(0.0, 100, 10), 7.0)
    assert small.feasible
    assert (small.ttft_objective_seconds, small.tpot_objective_seconds) == (1.0, 0.1)
    assert (small.first_arrived_at, small.wanted_tokens, small.tries) == (7.0, 110, 0)
    large = Door(stage(), EDGES).visit(traced(0.0, 7000, 10), 0.0)
    assert large.ttft_objective_seconds == pytest.approx(5 * (2 * 0.01 + 7000 / 10_000))


def test_what_a_request_takes_alone_is_found_out_once_for_each_size_and_ceiling() -> None:
    setting, built = stage(), []

    def build() -> ReplicaModel:
        built.append(1)
        return setting.build_model()

    door = Door(replace(setting, build_model=build), EDGES)
    first, again, longer = (door.visit(traced(at, 100, tokens), at) for at, tokens in ((0.0, 10), (1.0, 10), (2.0, 20)))
    assert len(built) == 2
    assert again.fingerprint != first.fingerprint
    assert again == replace(first, traced=again.traced, first_arrived_at=1.0, fingerprint=again.fingerprint)
    assert longer.wanted_tokens == 120


def test_what_the_replica_could_never_serve_is_infeasible_and_wants_nothing() -> None:
    beyond = Door(stage(), EDGES).visit(traced(0.0, 9000, 10), 0.0)
    assert not beyond.feasible
    assert beyond.wanted_tokens == 0


def test_what_an_idle_replica_serves_too_slowly_is_infeasible() -> None:
    hurried = Objectives(dict.fromkeys(Lane, 0.0101))  # a step with one sequence takes 0.0102 s
    assert not Door(stage(objectives=hurried), EDGES).visit(traced(0.0, 100, 10), 0.0).feasible
    assert Door(stage(objectives=hurried), EDGES).visit(traced(0.0, 100, 1), 0.0).feasible


def test_tenants_keep_their_name_where_the_policy_has_it() -> None:
    tenants = '[[tenants]]\nname = "red"\nkeys_file = "x"\n[[tenants]]\nname = "blue"\nkeys_file = "y"\n'
    door = Door(stage(text=tenants + ONE_POOL), EDGES)
    names = [door.visit(traced(0.0, tenant=tenant), 0.0).tenant for tenant in ("blue", "blue~2", "red", "unheard of")]
    assert names == ["blue", "blue", "red", "red"]


def test_the_gate_sees_everything_but_the_true_length() -> None:
    asked = traced(
        0.0, 100, 7, asked_output_tokens=64, intent=Intent.BULK, priority_class=PriorityClass.LOW, session="s", copies=2
    )
    door = Door(stage(), EDGES)
    visit = door.visit(replace(asked, blocks=PromptBlocks((10, 255), 16), streamed=False), 1.0)
    request = door.request(Try(5, visit, 2.0))
    assert (request.key, request.prompt_tokens, request.copies, request.arrived_at) == (5, (100,), 2, 2.0)
    assert (request.asked_output_tokens, request.asked_intent, request.asked_class) == (
        64,
        Intent.BULK,
        PriorityClass.LOW,
    )
    assert (request.session, request.prefix_blocks, request.streamed) == ("s", ("a", "ff"), False)
    assert request.model == "llmshed/simulated"
