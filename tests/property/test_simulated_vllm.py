"""The simulated vLLM replica: it gives what the slow way gives, and keeps its books under anything."""

from collections import Counter
from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from fakes.naive_vllm import NaiveVllm
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Dropped, Ended, FirstToken, Preempted, Result, StepsEnded
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence
from llmshed.simulation.vllm.parameters import SchedulingPolicy, VllmParameters
from llmshed.simulation.vllm.scheduler import VllmScheduler

TIMES = StepTimes(0.02, 0.001, 0.000_3, 0.003, 0.000_01, 0.000_02)


@st.composite
def replicas(draw: st.DrawFn, *, thresholds: bool) -> VllmParameters:
    """Small replicas of any kind, so that everything happens within a few sequences."""
    block = draw(st.sampled_from([1, 2, 4, 7, 16]))
    max_model_len = draw(st.integers(8, 60))
    usable = -(-(max_model_len - 1) // block) + draw(st.integers(0, 100 // block))
    seqs = draw(st.integers(1, 6))
    chunked = draw(st.booleans())
    return VllmParameters(
        max_num_seqs=seqs,
        max_num_batched_tokens=draw(st.integers(seqs if chunked else max(seqs, max_model_len), 70)),
        max_model_len=max_model_len,
        kv_tokens=(usable + 1) * block,
        block_tokens=block,
        watermark_ratio=draw(st.sampled_from([0.0, 0.1, 0.3])),
        chunked_prefill=chunked,
        long_prefill_token_threshold=draw(st.integers(0, 12)) if thresholds else 0,
        policy=draw(st.sampled_from(SchedulingPolicy)),
        prefix_caching=draw(st.booleans()),
        scheduler_reserve_full_isl=draw(st.booleans()),
        step_times=TIMES,
    )


@dataclass(frozen=True, slots=True)
class Script:
    """What clients do: sequences with when they come, and when some of them leave."""

    arrivals: list[tuple[float, Sequence]]
    departures: dict[int, float]


@st.composite
def scripts(draw: st.DrawFn, max_model_len: int, *, shared: bool) -> Script:
    now, arrivals, departures = 0.0, [], {}
    for key in range(draw(st.integers(1, 14))):
        now += draw(st.floats(0.000_1, 1.5)) if draw(st.booleans()) else 0.000_013
        input_tokens = draw(st.integers(1, max_model_len - 1))
        unit = draw(st.sampled_from([1, 3, 8]))
        # The ids end before the prompt does: what the engine recomputes of a whole hit is then nobody else's.
        known = draw(st.integers(0, (input_tokens - 1) // unit))
        ids = tuple(draw(st.sampled_from([0, 0, 0, 1])) for _ in range(known))
        sequence = Sequence(
            key,
            input_tokens,
            draw(st.none() | st.integers(1, max_model_len)),
            natural_end=draw(st.none() | st.builds(NaturalEnd, st.integers(1, 50), st.just(FinishReason.EOS))),
            blocks=PromptBlocks(ids, unit) if shared else None,
            priority=draw(st.integers(0, 2)),
        )
        arrivals.append((now, sequence))
        if draw(st.integers(0, 4)) == 0:
            departures[key] = now + draw(st.floats(0.001, 2))
    return Script(arrivals, departures)


def calls(script: Script) -> list[tuple[float, Sequence | int]]:
    """All calls in their order: a sequence that comes, or the key of one that leaves."""
    arrivals: list[tuple[float, Sequence | int]] = list(script.arrivals)
    return sorted([*arrivals, *((at, key) for key, at in script.departures.items())], key=lambda call: call[0])


def play(parameters: VllmParameters, script: Script, every: float | None = None) -> list[Result]:
    """Return all results; `advance` is called at each change, or else also `every` so many seconds."""
    replica = VllmScheduler(parameters)
    results: list[Result] = []

    def run(until: float) -> None:
        while (at := replica.next_change_at if every is None else replica.next_step_at) is not None and at <= until:
            results.extend(replica.advance(at))
            assert replica.check() == ()
        results.extend(replica.advance(until))

    for at, call in calls(script):
        if every is not None:
            for tick in range(int(every)):
                results.extend(replica.advance(min(at, tick * at / every)))
        run(at)
        if isinstance(call, Sequence):
            assert replica.take_permit(call.key)
            assert isinstance(replica.submit(call, at), OutputPlan)
        else:
            replica.leave(call)
    run(1e9)
    assert (replica.held_kv_tokens, replica.queue_size, replica.batch_size, replica.permits_in_use) == (0, 0, 0, 0)
    return results


def differences(parameters: VllmParameters, script: Script) -> None:
    """Compare what the replica tells with what the slow way comes to."""
    slow = NaiveVllm(parameters, script.arrivals, script.departures)
    slow.run()
    results = play(parameters, script)
    jobs = slow.jobs.values()
    firsts = {result.key: result.at for result in results if isinstance(result, FirstToken)}
    ends = {result.key: result for result in results if isinstance(result, Ended)}
    preempted = [(result.key, result.at) for result in results if isinstance(result, Preempted)]
    assert firsts == pytest.approx({job.sequence.key: job.first_at for job in jobs if job.first_at is not None})
    ended = [job for job in jobs if job.ended_at is not None]
    assert {key: end.output_tokens for key, end in ends.items()} == {job.sequence.key: job.produced for job in ended}
    assert {key: end.at for key, end in ends.items()} == pytest.approx(
        {job.sequence.key: job.ended_at for job in ended}
    )
    starts = {key: end.started_at for key, end in ends.items()}
    assert starts == pytest.approx({job.sequence.key: job.started_at for job in ended})
    assert Counter(key for key, _ in preempted) == {
        job.sequence.key: len(job.preempted_at) for job in jobs if job.preempted_at
    }
    slow_preempted = sorted(at for job in jobs for at in job.preempted_at)
    assert sorted(at for _, at in preempted) == pytest.approx(slow_preempted)
    assert sum(result.count for result in results if isinstance(result, StepsEnded)) == slow.steps
    dropped = {result.key for result in results if isinstance(result, Dropped)}
    assert dropped == set(slow.dropped)


@settings(max_examples=300)
@given(data=st.data())
def test_every_time_and_count_is_that_of_the_slow_way(data: st.DataObject) -> None:
    parameters = data.draw(replicas(thresholds=True))
    differences(parameters, data.draw(scripts(parameters.max_model_len, shared=False)))


@settings(max_examples=300)
@given(data=st.data())
def test_shared_prompts_are_found_and_forgotten_as_the_slow_way_does(data: st.DataObject) -> None:
    parameters = data.draw(replicas(thresholds=False))
    differences(parameters, data.draw(scripts(parameters.max_model_len, shared=True)))
