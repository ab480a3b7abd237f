"""From configuration and replica to a setting, as the daemon would take them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.stages import GPU, ONE_POOL, config, stage
from llmshed.admission.request import Lane
from llmshed.profile.parsing import parse_profile
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.simulation.vllm.scheduler import VllmScheduler
from llmshed.whatif.staging import build_controller, setting_from, spread_copies

TWO_POOLS = """
[lanes.interactive]
tpot_objective_seconds = 0.05
[lanes.bulk]
tpot_objective_seconds = 0.2
[[pools]]
name = "fast"
model = "one"
lanes = ["interactive"]
[[pools.replicas]]
name = "a"
url = "http://10.0.0.1:80"
[[pools.replicas]]
name = "b"
url = "http://10.0.0.2:80"
[[pools]]
name = "slow"
model = "two"
lanes = ["bulk"]
[[pools.replicas]]
name = "c"
url = "http://10.0.0.3:80"
"""

PROFILE = """
schema = "llmshed.profile/1"
name = "mine"
version = "1"
[budget]
gross_ceiling_tokens = 50_000
hard_cap_sequences = 64
basis = "declared"
"""


def test_each_pool_gets_its_copies_of_the_one_replica() -> None:
    setting = setting_from(config(TWO_POOLS), {}, GPU, {"fast": 2, "slow": 1})
    assert [(spec.name, spec.pool) for spec in setting.specs] == [
        ("fast-1", "fast"),
        ("fast-2", "fast"),
        ("slow-1", "slow"),
    ]
    assert list(setting.models) == ["fast-1", "fast-2", "slow-1"]
    assert len({id(model) for model in setting.models.values()}) == 3


def test_numbers_are_those_that_the_daemon_would_have_taken() -> None:
    budget = stage(text=ONE_POOL).specs[0].budget
    assert (budget.gross_ceiling_tokens, budget.safe_budget_tokens, budget.hard_cap_sequences) == (60_000, 54_000, 100)
    limits = stage().specs[0].limits
    assert (limits.max_input_tokens, limits.max_total_tokens) == (8000, 8192)


def test_replicas_of_vllm_lend_what_they_tell_of_their_kv_and_their_seats() -> None:
    bare = ONE_POOL.replace("gross_ceiling_tokens = 60_000\n", "").replace("max_concurrent_sequences = 100\n", "")
    setting = stage(2, bare, VllmParameters(max_num_seqs=70, max_model_len=4000, kv_tokens=50_000))
    spec = setting.specs[0]
    assert (spec.budget.gross_ceiling_tokens, spec.budget.hard_cap_sequences) == (50_000, 70)
    assert (spec.limits.max_input_tokens, spec.limits.max_total_tokens) == (3999, 4000)
    assert spec.overrun_chunk_tokens == 0
    assert all(isinstance(model, VllmScheduler) for model in (*setting.models.values(), setting.build_model()))


def test_without_profile_or_ceiling_the_operator_is_warned() -> None:
    bare = ONE_POOL.replace("gross_ceiling_tokens = 60_000\n", "")
    uncalibrated, beside_kv = stage(text=bare).warnings
    assert "main is uncalibrated" in uncalibrated
    assert f"the KV cache of its engine holds {GPU.kv_tokens:,}: most of it is never lent" in beside_kv
    assert stage().specs[0].budget.gross_ceiling_tokens == 60_000


def test_a_profile_gives_the_budget() -> None:
    profile = parse_profile(PROFILE, "mine.toml")
    bare = ONE_POOL.replace("gross_ceiling_tokens = 60_000\n", "").replace("max_concurrent_sequences = 100\n", "")
    setting = setting_from(config(bare), {"main": profile}, GPU, {"main": 1})
    assert setting.specs[0].profile == "mine@1"
    assert setting.specs[0].budget.gross_ceiling_tokens == 50_000
    assert setting.warnings == ()


def test_requests_ask_for_the_model_of_the_first_pool_and_the_others_are_told_idle() -> None:
    setting = setting_from(config(TWO_POOLS), {}, GPU, {"fast": 1, "slow": 1})
    assert setting.model == "one"
    assert any("pool slow serves two" in warning for warning in setting.warnings)


def test_objectives_come_from_the_lanes() -> None:
    objectives = setting_from(config(TWO_POOLS), {}, GPU, {"fast": 1, "slow": 1}).objectives
    assert objectives.tpot_seconds == {Lane.INTERACTIVE: 0.05, Lane.BULK: 0.2, Lane.OVERFLOW: 0.2}
    assert [objectives.ttft_seconds(idle) for idle in (0.01, 0.2, 0.5)] == [1.0, 1.0, 2.5]


def test_tenants_that_nobody_configured_count_as_the_first_or_the_anonymous() -> None:
    assert stage().default_tenant == "anonymous"
    tenants = '[[tenants]]\nname = "red"\nkeys_file = "x"\n[[tenants]]\nname = "blue"\nkeys_file = "y"\n'
    assert stage(text=tenants + ONE_POOL).default_tenant == "red"


def test_a_pool_without_copies_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="pool slow has no replicas"):
        setting_from(config(TWO_POOLS), {}, GPU, {"fast": 2})


def test_the_controller_begins_with_all_replicas_up() -> None:
    state = build_controller(stage(3)).state(0.0)
    assert [(replica.name, replica.up) for replica in state.replicas] == [(f"main-{n}", True) for n in (1, 2, 3)]


@given(st.integers(2, 500))
def test_copies_are_spread_by_what_pools_list_and_none_is_lost(total: int) -> None:
    copies = spread_copies(config(TWO_POOLS), total)
    assert sum(copies.values()) == total
    assert copies["fast"] >= copies["slow"] >= 1


def test_copies_of_one_pool_are_all_its_own() -> None:
    assert spread_copies(config(), 4) == {"main": 4}
    assert spread_copies(config(TWO_POOLS), 3) == {"fast": 2, "slow": 1}


def test_fewer_replicas_than_pools_are_refused() -> None:
    with pytest.raises(ValueError, match="1 replicas cannot serve 2 pools"):
        spread_copies(config(TWO_POOLS), 1)
