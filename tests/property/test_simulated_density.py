"""How often somebody looks at a simulated replica changes nothing of what happens in it, to the last bit."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Result, StepsEnded
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence

# No step ends at a round instant, so that no call of a plan falls on the very end of one.
TIMES = StepTimes(
    0.020318309,
    seconds_per_prefill_token=0.0001,
    seconds_per_decoding_sequence=0.0003,
    weights_seconds=0.004,
    seconds_per_attention_pair=1e-8,
    seconds_per_resident_token=1.7e-6,
)


@dataclass(frozen=True, slots=True)
class Submit:
    input_tokens: int
    output_tokens: int | None
    natural_tokens: int | None
    prefix: int


@dataclass(frozen=True, slots=True)
class Leave:
    back: int
    """How many sequences ago it was submitted."""


@dataclass(frozen=True, slots=True)
class Fail:
    pass


@dataclass(frozen=True, slots=True)
class Stall:
    seconds: float


@dataclass(frozen=True, slots=True)
class Resume:
    pass


Call = Submit | Leave | Fail | Stall | Resume
Course = tuple[list[Result], list[tuple[int, ...]]]
Look = Callable[[Scheduler, float, float], list[Result]]

CALLS = st.one_of(
    st.builds(
        Submit,
        input_tokens=st.integers(1, 1200),
        output_tokens=st.none() | st.integers(1, 1500),
        natural_tokens=st.none() | st.integers(1, 1500),
        prefix=st.integers(0, 2),
    ),
    st.builds(Submit, st.integers(1, 60), st.integers(1, 60), st.none(), st.just(0)),
    st.builds(Leave, st.integers(0, 4)),
    st.builds(Fail),
    st.builds(Stall, st.floats(0, 3)),
    st.builds(Resume),
)
PLANS = st.lists(st.tuples(st.one_of(st.just(0.0), st.floats(0, 0.2), st.floats(0, 30)), CALLS), max_size=14)


@st.composite
def replicas(draw: st.DrawFn) -> ReplicaParameters:
    version = draw(st.sampled_from(["2.4.0", "3.0.1", "3.3.5"]))
    speculate = draw(st.sampled_from([0, 0, 3]))
    block = draw(st.sampled_from([1, 16, 256]))
    return ReplicaParameters(
        version=version,
        max_concurrent_requests=8,
        max_input_tokens=1200,
        max_total_tokens=2300,
        max_batch_prefill_tokens=draw(st.integers(1200, 2400)),
        max_batch_size=draw(st.none() | st.integers(1, 5)),
        kv_tokens=draw(st.integers(2400, 5000)) + 3 * block,
        block_tokens=block,
        prefix_caching=draw(st.booleans()),
        speculate=speculate,
        accepted_tokens=draw(st.floats(0, speculate)),
        step_times=TIMES,
    )


def at_once(replica: Scheduler, _since: float, until: float) -> list[Result]:
    return replica.advance(until)


def at_every_change(replica: Scheduler, _since: float, until: float) -> list[Result]:
    results = []
    while (at := replica.next_change_at) is not None and at <= until:
        results += replica.advance(at)
    return results + replica.advance(until)


def at_every_step(replica: Scheduler, _since: float, until: float) -> list[Result]:
    results = []
    while (at := replica.next_step_at) is not None and at <= until:
        change = replica.next_change_at
        assert change is not None
        assert at <= change
        results += replica.advance(at)
    return results + replica.advance(until)


def between(shares: list[float]) -> Look:
    def look(replica: Scheduler, since: float, until: float) -> list[Result]:
        results = []
        for share in sorted(shares):
            results += replica.advance(since + share * (until - since))
        return results + replica.advance(until)

    return look


def perform(replica: Scheduler, plan: list[tuple[float, Call]], look: Look) -> Course:
    now, next_key = 0.0, 0
    results: list[Result] = []
    seen = []
    for wait, call in [*plan, (1000.0, Resume())]:
        results += look(replica, now, now + wait)
        now += wait
        seen.append(tuple(replica.output_tokens(key) for key in range(next_key)))
        match call:
            case Submit():
                key, next_key = next_key, next_key + 1
                if replica.take_permit(key):
                    replica.submit(sequence(key, call), now)
            case Leave(back):
                replica.leave(next_key - 1 - back)
            case Fail():
                replica.fail_step("out of memory")
            case Stall(seconds):
                replica.stall(now, seconds)
            case Resume():
                replica.resume(now)
        assert replica.check() == ()
    results += look(replica, now, now + 1000)
    return merged(results), seen


def sequence(key: int, call: Submit) -> Sequence:
    ids = tuple(1000 * call.prefix + place for place in range(call.input_tokens // 2))
    natural = None if call.natural_tokens is None else NaturalEnd(call.natural_tokens, FinishReason.EOS)
    return Sequence(key, call.input_tokens, call.output_tokens, None, natural, PromptBlocks(ids, 2))


def merged(results: list[Result]) -> list[Result]:
    """Put together calls that are told apart only because somebody looked in between."""
    course: list[Result] = []
    for result in results:
        both = together(course[-1], result) if course else None
        if both is None:
            course.append(result)
        else:
            course[-1] = both
    return course


def together(first: Result, second: Result) -> StepsEnded | None:
    match first, second:
        case StepsEnded(failed=False), StepsEnded(joined=0) if first.kind is second.kind:
            count, seconds = first.count + second.count, first.seconds + second.seconds
            return replace(first, count=count, seconds=seconds, failed=second.failed)
        case _:
            return None


def durations(results: list[Result]) -> list[float]:
    return [result.seconds for result in results if isinstance(result, StepsEnded)]


def without_durations(results: list[Result]) -> list[Result]:
    return [replace(result, seconds=0.0) if isinstance(result, StepsEnded) else result for result in results]


def assert_same(course: Course, other: Course) -> None:
    (results, seen), (others, others_seen) = course, other
    assert seen == others_seen
    assert without_durations(results) == without_durations(others)
    # Those of calls that were told together are sums, whose last bits depend on the order of addition.
    assert durations(results) == pytest.approx(durations(others))


@settings(max_examples=60, deadline=None)
@given(parameters=replicas(), plan=PLANS, shares=st.lists(st.floats(0, 1), max_size=5))
def test_looking_more_often_changes_nothing(
    parameters: ReplicaParameters, plan: list[tuple[float, Call]], shares: list[float]
) -> None:
    course = perform(Scheduler(parameters), plan, at_once)
    assert_same(course, perform(Scheduler(parameters), plan, at_every_change))
    assert_same(course, perform(Scheduler(parameters), plan, at_every_step))
    assert_same(course, perform(Scheduler(parameters), plan, between(shares)))


class StepByStep(Scheduler):
    """The oracle: it looks at the queue and at every sequence after each step."""

    def _steps_without_change(self, *, looked: bool) -> int:
        del looked
        return 1


@settings(max_examples=100, deadline=None)
@given(parameters=replicas(), plan=PLANS)
def test_a_stretch_comes_to_what_its_steps_come_to_one_by_one(
    parameters: ReplicaParameters, plan: list[tuple[float, Call]]
) -> None:
    # Within a stretch residency grows smoothly, step by step in whole tokens: that is the same without speculation.
    parameters = replace(parameters, accepted_tokens=0.0)
    results, seen = perform(Scheduler(parameters), plan, at_once)
    others, others_seen = perform(StepByStep(parameters), plan, at_every_step)
    assert seen == others_seen
    assert [type(result) for result in results] == [type(result) for result in others]
    for result, other in zip(results, others, strict=True):
        assert asdict(result) == pytest.approx(asdict(other), abs=1e-6)
