"""Settings of virtual runs, gates that do one thing, and traces made by hand."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from llmshed.admission.actions import Action, Dispatch, Refuse, Released
from llmshed.admission.budget import Reservation
from llmshed.admission.events import Arrived, Event, Failed, Finished
from llmshed.admission.reasons import Reason
from llmshed.admission.verdict import Decision, Verdict
from llmshed.config.loading import load_config
from llmshed.config.settings import Config
from llmshed.simulation.building import Parameters
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.whatif.report import RunReport
from llmshed.whatif.setting import Setting
from llmshed.whatif.staging import build_controller, setting_from
from llmshed.whatif.world import RunPlan, simulate
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

EDGES = (100, 1000, 2000)

ONE_POOL = """
[[pools]]
gross_ceiling_tokens = 60_000
max_concurrent_sequences = 100
[[pools.replicas]]
name = "a"
url = "simulated:"
"""

GPU = ReplicaParameters(
    max_input_tokens=8000,
    max_total_tokens=8192,
    kv_tokens=60_000,
    step_times=StepTimes(step_seconds=0.01, seconds_per_prefill_token=1 / 10_000, seconds_per_decoding_sequence=0.0002),
)


def config(text: str = ONE_POOL) -> Config:
    return load_config(text, "llmshed.toml", {}, {}).config


def stage(copies: int = 1, text: str = ONE_POOL, parameters: Parameters = GPU, **changed: Any) -> Setting:
    """Return a setting of real simulated replicas, without a charge for the gateway's own time."""
    plain = config(text)
    setting = setting_from(plain, {}, parameters, {pool.name: copies for pool in plain.pools})
    free = dict.fromkeys(
        (
            "gateway_seconds_per_request",
            "gateway_seconds_per_input_token",
            "gateway_seconds_per_output_token",
        ),
        0.0,
    )
    return replace(setting, **{**free, **changed})


def stage_of(build: Callable[[], ReplicaModel], copies: int = 1, **changed: Any) -> Setting:
    """Return a setting of replicas of a test's own making."""
    setting = stage(copies, **changed)
    return replace(setting, models={name: build() for name in setting.models}, build_model=build)


class OpenGate:
    """Sends each request to the next replica in turn, and keeps nothing but who is there."""

    def __init__(self, setting: Setting) -> None:
        self.names = [spec.name for spec in setting.specs]
        self.there: dict[int, str] = {}
        self.seen: list[tuple[float, Event]] = []

    def handle(self, event: Event, now: float) -> list[Action]:
        self.seen.append((now, event))
        match event:
            case Arrived(request):
                name = self.names[len(self.seen) % len(self.names)]
                ceiling = request.asked_output_tokens or 100
                tokens = request.input_tokens + request.sequences * ceiling
                self.there[request.key] = name
                reservation = Reservation(request.input_tokens, tokens - request.input_tokens, 0, request.sequences)
                verdict = Verdict(Decision.ADMIT, output_ceiling_tokens=ceiling, reservation=reservation)
                return [Dispatch(request.key, name, verdict)]
            case Finished(key) | Failed(key):
                return [Released(key, self.there.pop(key), 0)]
            case _:
                return []

    def next_wakeup(self) -> float | None:
        return None

    def check(self) -> tuple[str, ...]:
        return ()


class ShutGate(OpenGate):
    """Refuses every request, with a reason and a wait."""

    def __init__(
        self, setting: Setting, reason: Reason = Reason.TOKEN_BUDGET_EXHAUSTED, wait: float | None = 2.0
    ) -> None:
        super().__init__(setting)
        self.verdict = Verdict(Decision.REFUSE, reason, retry_after_seconds=wait)

    def handle(self, event: Event, now: float) -> list[Action]:
        self.seen.append((now, event))
        return [Refuse(event.request.key, self.verdict)] if isinstance(event, Arrived) else []


def traced(at: float, input_tokens: int = 10, output_tokens: int = 5, **changed: Any) -> TracedRequest:
    return TracedRequest(at, input_tokens, output_tokens, **{"asked_output_tokens": output_tokens, **changed})


def made_up(seed: int, requests: int, per_second: float) -> Iterator[TracedRequest]:
    """Yield requests of all sorts at Poisson times."""
    rng = random.Random(seed)  # noqa: S311 - one seed, one trace
    at = 0.0
    for number in range(requests):
        at += rng.expovariate(per_second)
        output = min(1 + int(rng.expovariate(1 / 80)), 900)
        yield TracedRequest(
            at,
            min(1 + int(rng.expovariate(1 / 700)), 7000),
            output,
            asked_output_tokens=rng.choice([None, output + 20, 1 << (output - 1).bit_length()]),
            tenant=f"tenant-{number % 7}",
            streamed=rng.random() < 0.8,
            copies=rng.choice([1, 1, 1, 2]),
        )


def run(
    setting: Setting,
    trace: Iterable[TracedRequest],
    gate: Any = None,
    clients: ClientModel = ClientModel.NONE,
    seed: int = 0,
    plan: RunPlan = RunPlan(EDGES),  # noqa: B008 - a frozen value
) -> RunReport:
    """Run a trace, through the daemon's own controller unless another gate is given."""
    door = build_controller(setting) if gate is None else gate
    return simulate(setting, door, trace, clients, random.Random(seed), plan)  # noqa: S311 - one seed, one run
