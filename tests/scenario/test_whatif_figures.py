"""The figures of a run, reckoned once more from nothing but what a gate was told and said, and when."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fakes.stages import GPU, ONE_POOL, OpenGate, made_up, run, stage
from llmshed.admission.actions import Action, Evict, Refuse
from llmshed.admission.events import Arrived, Event, Failed, Finished, FirstToken
from llmshed.simulation.results import Ended
from llmshed.simulation.results import FirstToken as EngineFirstToken
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence
from llmshed.whatif.gate import Gate
from llmshed.whatif.gates.table import build_gate
from llmshed.whatif.report import Fairness, Slice
from llmshed.whatif.setting import Setting
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

TPOT_OBJECTIVE_SECONDS = 0.1
TOO_LONG_TOKENS = 8_100
SMALL_POOL = ONE_POOL.replace("60_000", "20_000")


@dataclass
class Course:
    """What a gate saw of one request of the trace: its tries, and the one that was served."""

    tries: list[float] = field(default_factory=list)
    served_try_at: float | None = None
    first_token_at: float | None = None
    ended_at: float | None = None
    output_tokens: int = 0


class Witness:
    """A gate that notes by arrival what goes through another; arrivals of the trace differ."""

    def __init__(self, setting: Setting, gate: Gate) -> None:
        self._setting = setting
        self._gate = gate
        self._whose: dict[int, Course] = {}
        self._came: dict[int, float] = {}
        self.courses: dict[float, Course] = {}
        self.unserved = 0

    def handle(self, event: Event, now: float) -> list[Action]:
        self._note(event, now)
        actions = self._gate.handle(event, now)
        self.unserved += sum(isinstance(action, Refuse | Evict) for action in actions)
        return actions

    def next_wakeup(self) -> float | None:
        return self._gate.next_wakeup()

    def check(self) -> tuple[str, ...]:
        return self._gate.check()

    def _note(self, event: Event, now: float) -> None:
        match event:
            case Arrived(request):
                course = self.courses.setdefault(self._setting.truth(request.key).at_seconds, Course())
                course.tries.append(request.arrived_at)
                self._whose[request.key], self._came[request.key] = course, request.arrived_at
            case FirstToken(key):
                self._whose[key].first_token_at = now
            case Finished(key, output_tokens):
                course = self._whose[key]
                course.served_try_at, course.ended_at = self._came[key], now
                course.output_tokens = output_tokens or 0  # a run's engines always tell it
            case Failed():
                self.unserved += 1
            case _:
                pass


def alone(setting: Setting, one: TracedRequest) -> tuple[float, float, int] | None:
    """Return TTFT, slowest pace and output of a request on an idle engine, looked at after every single step."""
    engine = setting.build_model()
    if one.input_tokens > GPU.max_input_tokens:
        return None
    for key in range(one.copies):
        assert engine.take_permit(key)
        end = NaturalEnd(one.true_output_tokens, FinishReason.EOS)
        engine.submit(
            Sequence(key, one.input_tokens, asked_output_tokens=one.asked_output_tokens, natural_end=end), 0.0
        )
    firsts: dict[int, float] = {}
    ends: dict[int, Ended] = {}
    while len(ends) < one.copies:
        at = engine.next_step_at if engine.next_step_at is not None else engine.next_change_at
        assert at is not None
        for result in engine.advance(at):
            if isinstance(result, EngineFirstToken):
                firsts[result.key] = result.at
            elif isinstance(result, Ended):
                ends[result.key] = result
    paces = [(end.at - firsts[key]) / (end.output_tokens - 1) for key, end in ends.items() if end.output_tokens > 1]
    return min(firsts.values()), max(paces, default=0.0), sum(end.output_tokens for end in ends.values())


@dataclass
class Account:
    """Sums over the feasible requests."""

    infeasible: int = 0
    feasible: int = 0
    good: int = 0
    good_tokens: int = 0
    offered_tokens: int = 0
    waits: list[float] = field(default_factory=list)
    try_waits: list[float] = field(default_factory=list)
    offered: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)

    def take(self, one: TracedRequest, course: Course, idle: tuple[float, float, int] | None) -> None:
        if idle is None or idle[1] > TPOT_OBJECTIVE_SECONDS:
            self.infeasible += 1
            return
        self.feasible += 1
        prompt_tokens = one.input_tokens * one.copies
        self.offered_tokens += prompt_tokens + idle[2]
        self.offered[one.tenant] += prompt_tokens + idle[2]
        seen_at = course.first_token_at if one.streamed else course.ended_at
        if course.ended_at is None or course.served_try_at is None or seen_at is None:
            return
        tokens = prompt_tokens + course.output_tokens
        self.served[one.tenant] += tokens
        self.waits.append(seen_at - one.at_seconds)
        self.try_waits.append(seen_at - course.served_try_at)
        allowed = max(1.0, 5 * idle[0])
        paces = max(course.output_tokens / one.copies - 1, 0) * TPOT_OBJECTIVE_SECONDS
        good = seen_at - one.at_seconds <= allowed + (0 if one.streamed else paces)
        if one.streamed:
            good = good and course.ended_at - seen_at <= paces
        self.good += good
        self.good_tokens += tokens * good


def jain(parts: list[float]) -> float:
    return float(sum(parts) ** 2 / (len(parts) * sum(part**2 for part in parts)))


def traffic() -> list[TracedRequest]:
    """Half a minute above what the engine carries; a stream of several copies would hide its paces from the gate."""
    return [
        replace(
            one,
            copies=1 if one.streamed else one.copies,
            input_tokens=TOO_LONG_TOKENS if number % 40 == 7 else one.input_tokens,
            asked_output_tokens=one.asked_output_tokens or one.true_output_tokens + 1,
        )
        for number, one in enumerate(made_up(11, 300, 12.0))
    ]


def ours(setting: Setting) -> Gate:
    return build_gate("ours", setting)


def waits_for_room(setting: Setting) -> Gate:
    return build_gate("smallest_first", setting)


@pytest.mark.parametrize("clients", [ClientModel.NONE, ClientModel.POLITE])
@pytest.mark.parametrize("build", [ours, waits_for_room, OpenGate])
def test_every_figure_follows_from_what_happened(build: Callable[[Setting], Any], clients: ClientModel) -> None:
    setting = stage(text=SMALL_POOL, parameters=replace(GPU, max_concurrent_requests=32))
    witness = Witness(setting, build(setting))
    trace = traffic()
    report = run(setting, trace, witness, clients, seed=3)
    account = Account()
    for one in trace:
        account.take(one, witness.courses[one.at_seconds], alone(setting, one))
    assert report.drained
    assert 0 < account.good < 0.9 * account.feasible, "this is an overload"
    holds(report.total, account, trace[-1].at_seconds)
    shares(report.fairness, account)
    assert report.total.retries == sum(len(course.tries) - 1 for course in witness.courses.values())
    assert sum(report.total.refusals.values()) == witness.unserved


def holds(told: Slice, account: Account, seconds: float) -> None:
    assert (told.infeasible, told.good, told.ttft_seconds.count) == (
        account.infeasible, account.good, len(account.waits)
    )  # fmt: skip
    assert told.attainment == account.good / account.feasible
    assert told.goodput_requests_per_second == pytest.approx(account.good / seconds)
    assert told.goodput_tokens_per_second == pytest.approx(account.good_tokens / seconds)
    assert told.offered_tokens_per_second == pytest.approx(account.offered_tokens / seconds)
    assert told.good_tokens_share == pytest.approx(account.good_tokens / account.offered_tokens)
    for quantiles, waits in ((told.ttft_seconds, account.waits), (told.try_ttft_seconds, account.try_waits)):
        ordered = sorted(waits)
        assert quantiles.mean == pytest.approx(sum(waits) / len(waits))
        assert quantiles.most == pytest.approx(ordered[-1])
        for told_quantile, part in ((quantiles.p50, 0.5), (quantiles.p90, 0.9), (quantiles.p99, 0.99)):
            assert told_quantile == pytest.approx(ordered[int(part * (len(ordered) - 1))], rel=0.0101)


def shares(told: Fairness, account: Account) -> None:
    assert told.jain_served_tokens == pytest.approx(jain([account.served[name] for name in account.offered]))
    parts = [account.served[name] / offered for name, offered in account.offered.items()]
    assert told.jain_served_share == pytest.approx(jain(parts))
