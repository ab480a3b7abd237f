"""The policies through the whole world: what collapses without a gateway, and what was there to be had.

The oracle is held against exhaustive search on cases small enough for it, and against every other policy that keeps the
order on larger ones.
"""

import gzip
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product, takewhile
from pathlib import Path

import pytest

from fakes.stages import ONE_POOL, run, stage, traced
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.hardware.parsing import parse_replica
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import Ended, FirstToken
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.gate import Gate
from llmshed.whatif.gates.levels import WORTHS, OracleLevel, best_oracle, oracle_levels
from llmshed.whatif.gates.objectives import TtftObjectives
from llmshed.whatif.gates.table import build_gate, oracle_gate
from llmshed.whatif.report import RunReport
from llmshed.whatif.setting import Setting
from llmshed.workload.ceilings import CeilingRule, with_ceilings
from llmshed.workload.clients import ClientModel
from llmshed.workload.formats import format_named
from llmshed.workload.readers.reading import Reading
from llmshed.workload.request import TracedRequest
from llmshed.workload.scaling import in_rate

SLOW = ReplicaParameters(
    max_input_tokens=4000,
    max_total_tokens=4096,
    kv_tokens=6000,
    step_times=StepTimes(step_seconds=0.02, seconds_per_prefill_token=1 / 4000, seconds_per_decoding_sequence=0.0002),
)
"""A small GPU: a prompt of 4,000 tokens takes a second, and two such do not fit its KV."""
SLOW_POOL = ONE_POOL.replace("60_000", "6_600")
TPOT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Plan:
    """For each request whether it is served, and after what of the one served before it: 0 nothing, 1 first, 2 end."""

    served: tuple[bool, ...]
    after: tuple[int, ...]


def slow_stage() -> Setting:
    return stage(text=SLOW_POOL, parameters=SLOW)


def good_tokens(report: RunReport) -> float:
    return report.total.goodput_tokens_per_second * report.offered_seconds


def tokens_of_plan(trace: list[TracedRequest], plan: Plan, objectives: list[float]) -> int:
    """Return the tokens of good requests when one replica is served by a plan, in the order of arrival."""
    model = Scheduler(SLOW)
    first: dict[int, float] = {}
    ended: dict[int, float] = {}

    def advance(until: float) -> None:
        for told in model.advance(until):
            if isinstance(told, FirstToken):
                first[told.key] = told.at
            elif isinstance(told, Ended):
                ended[told.key] = told.at

    now, before = 0.0, None
    for key, request in enumerate(trace):
        if not plan.served[key]:
            continue
        now = max(now, request.at_seconds)
        advance(now)
        told = (None, first, ended)[plan.after[key]]
        while told is not None and before is not None and before not in told:
            at = model.next_change_at
            assert at is not None
            now = at
            advance(now)
        assert model.take_permit(key)
        end = NaturalEnd(request.true_output_tokens, FinishReason.EOS)
        model.submit(Sequence(key, request.input_tokens, request.asked_output_tokens, natural_end=end), now)
        before = key
    advance(1e6)
    return sum(
        request.input_tokens + request.true_output_tokens
        for key, request in enumerate(trace)
        if key in ended
        and first[key] - request.at_seconds <= objectives[key]
        and ended[key] - first[key] <= TPOT_SECONDS * (request.true_output_tokens - 1) + 1e-9
    )


def best_of_all_plans(trace: list[TracedRequest]) -> int:
    ttft = TtftObjectives(slow_stage())
    objectives = [max(1.0, 5 * ttft.idle_seconds(request.input_tokens)) for request in trace]
    plans = (
        Plan(served, after)
        for served in product((True, False), repeat=len(trace))
        for after in product((0, 1, 2), repeat=len(trace))
        if all(served[key] or not after[key] for key in range(len(trace)))
    )
    return max(tokens_of_plan(trace, plan, objectives) for plan in plans)


def oracle_tokens(trace: list[TracedRequest]) -> float:
    padded = [*trace, traced(60.0, 1, 1)]  # so that the offered time is the same for all
    _, tokens = best_oracle(
        oracle_levels(slow_stage(), 4),
        lambda level: good_tokens(run(setting := slow_stage(), padded, oracle_gate(setting, level))),
        lambda told: told,
    )
    return tokens - 2


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param([traced(0.0, 500, 20)] * 4, id="a burst that fits"),
        pytest.param([traced(0.0, 3900, 50), traced(0.0, 3900, 50)], id="two that do not fit together"),
        pytest.param([traced(0.0, 3000, 100)] * 3, id="three of which each waits for the one before"),
        pytest.param([traced(0.0, 4000, 10), traced(0.1, 100, 10), traced(0.2, 100, 10)], id="short behind long"),
        pytest.param([traced(0.0, 100, 60), traced(0.5, 3900, 10)], id="a long prompt beside one who decodes"),
        pytest.param(
            [traced(0.0, 100, 3), traced(0.03, 3900, 10)], id="a long prompt beside one without time to spare"
        ),
        pytest.param([traced(0.0, 1500, 400), *[traced(0.1, 1500, 40)] * 3], id="KV that a long answer holds"),
        pytest.param([traced(0.0, 2500, 100), traced(0.0, 900, 5), traced(0.6, 900, 5)], id="one who is late alone"),
    ],
)
def test_on_small_cases_the_oracle_attains_what_exhaustive_search_does(trace: list[TracedRequest]) -> None:
    assert oracle_tokens(trace) == pytest.approx(best_of_all_plans(trace))


@pytest.mark.soak
def test_on_random_small_cases_the_oracle_is_near_a_search_that_knows_who_will_come() -> None:
    reached, possible = 0.0, 0.0
    for seed in range(30):
        rng = random.Random(seed)  # noqa: S311 - one seed, one case
        times = sorted(rng.uniform(0, 1.5) for _ in range(4))
        trace = [traced(at, rng.randint(50, 3500), rng.randint(1, 200)) for at in times]
        best, oracle = best_of_all_plans(trace), oracle_tokens(trace)
        reached, possible = reached + oracle, possible + best
    assert reached >= 0.93 * possible


FAST_KV = replace(SLOW, max_input_tokens=3000, max_total_tokens=4096, kv_tokens=24_000)
LOADED_POOL = ONE_POOL.replace("60_000", "24_000")
CAPACITY_PER_SECOND = 3.0
"""Requests of the load below that keep the engine busy; a little less, and without a gateway most are in time."""


def loaded_stage() -> Setting:
    return stage(text=LOADED_POOL, parameters=FAST_KV)


def load(seed: int, per_second: float, seconds: float = 120.0) -> Iterator[TracedRequest]:
    rng, at = random.Random(seed), 0.0  # noqa: S311 - one seed, one load
    while (at := at + rng.expovariate(per_second)) < seconds:
        output = rng.randint(20, 200)
        yield traced(at, rng.randint(100, 1500), output, asked_output_tokens=1 << (output - 1).bit_length())


@cache
def under(policy: str, scale: float, seed: int = 1) -> RunReport:
    setting = loaded_stage()
    return run(setting, load(seed, CAPACITY_PER_SECOND * scale), build_gate(policy, setting))


@cache
def best_under(scale: float, seed: int) -> RunReport:
    def at(level: OracleLevel) -> RunReport:
        setting = loaded_stage()
        return run(setting, load(seed, CAPACITY_PER_SECOND * scale), oracle_gate(setting, level))

    return best_oracle(oracle_levels(loaded_stage(), 4), at, good_tokens)[1]


def tokens_per_second(report: RunReport) -> float:
    return report.total.throughput_input_tokens_per_second + report.total.throughput_output_tokens_per_second


def test_without_a_gateway_twice_the_load_leaves_the_engine_as_busy_and_the_product_broken() -> None:
    once, twice = under("none", 1.0), under("none", 2.0)
    assert tokens_per_second(twice) == pytest.approx(tokens_per_second(once), rel=0.06)  # 2,757 and 2,898 a second
    assert twice.total.goodput_tokens_per_second < 0.5 * once.total.goodput_tokens_per_second  # 1,464 and about 100


def test_through_ours_twice_and_four_times_the_load_leave_goodput_where_it_was() -> None:
    once = under("ours", 1.0).total.goodput_tokens_per_second
    for scale in (2.0, 4.0):
        assert under("ours", scale).total.goodput_tokens_per_second >= 0.95 * once


@pytest.mark.parametrize("policy", ["request_limit", "token_bucket", "thresholds"])
def test_limits_that_do_not_count_the_tokens_of_answers_do_not_prevent_the_collapse(policy: str) -> None:
    assert under(policy, 2.0).total.goodput_tokens_per_second < 0.5 * under("ours", 2.0).total.goodput_tokens_per_second


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.8, 2.0])
def test_no_other_policy_that_keeps_the_order_passes_the_oracle_by_more_than_three_per_cent(
    scale: float, seed: int
) -> None:
    oracle = best_under(scale, seed).total
    for policy in ("ours", "none", "request_limit", "token_bucket", "thresholds"):
        other = under(policy, scale, seed).total
        assert other.goodput_tokens_per_second <= 1.03 * oracle.goodput_tokens_per_second, policy


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, pytest.param(4.0, marks=pytest.mark.soak)])
def test_what_the_oracle_serves_is_good(scale: float) -> None:
    total = best_under(scale, 1).total
    assert total.good >= 0.98 * total.finished


VLLM = VllmParameters(
    max_num_seqs=64,
    max_num_batched_tokens=4096,
    max_model_len=4096,
    kv_tokens=24_000,
    step_times=SLOW.step_times,
)
OTHERS = ("ours", "none", "request_limit", "token_bucket", "thresholds")


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("clients", [ClientModel.NONE, ClientModel.SDK])
@pytest.mark.parametrize("parameters", [pytest.param(FAST_KV, id="TGI"), pytest.param(VLLM, id="vLLM")])
def test_nor_does_one_before_another_engine_or_clients_that_come_again(
    parameters: ReplicaParameters | VllmParameters, clients: ClientModel
) -> None:
    def at(level: OracleLevel) -> RunReport:
        setting = stage(text=LOADED_POOL, parameters=parameters)
        return run(setting, load(1, 2 * CAPACITY_PER_SECOND), oracle_gate(setting, level), clients)

    levels = [level for level in oracle_levels(loaded_stage(), 3) if level.worth_ratio == 0]
    oracle = best_oracle(levels, at, good_tokens)[1].total
    assert oracle.good >= 0.98 * oracle.finished
    for policy in OTHERS:
        setting = stage(text=LOADED_POOL, parameters=parameters)
        other = run(setting, load(1, 2 * CAPACITY_PER_SECOND), build_gate(policy, setting), clients).total
        assert other.goodput_tokens_per_second <= 1.03 * oracle.goodput_tokens_per_second, policy


LONG = "llama-3.1-8b-h100"


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_nor_does_one_where_recorded_prompts_are_long_and_share_what_is_cached(
    scale: float, data_dir: Path, repository: Path
) -> None:
    description = parse_replica((repository / "profiles" / "replicas" / f"{LONG}.toml").read_text("utf-8"), LONG)
    parameters = description.parameters
    with gzip.open(data_dir / "traces" / "mooncake_conversation_first40min.jsonl.gz") as file:
        read = format_named("mooncake").read(iter([file.read()]), Reading(random.Random(0)))  # noqa: S311 - one seed
        recorded = tuple(takewhile(lambda one: one.at_seconds < 120, read))
    trace = list(in_rate(with_ceilings(recorded, CeilingRule.POW2), scale, random.Random(0), 120.0))  # noqa: S311 - as above
    pool = ONE_POOL.replace("60_000", str(parameters.kv_tokens))

    def goodput(build: Callable[[Setting], Gate]) -> float:
        setting = stage(text=pool, parameters=parameters)
        return run(setting, trace, build(setting)).total.goodput_tokens_per_second

    levels = [OracleLevel(parameters.kv_tokens, worth_ratio=worth) for worth in WORTHS]
    oracle = max(goodput(partial(oracle_gate, level=level)) for level in levels)
    for policy in OTHERS:
        assert goodput(partial(build_gate, policy)) <= oracle, policy
