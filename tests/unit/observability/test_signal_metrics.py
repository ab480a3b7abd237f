"""What a scrape shows of replicas' signals: gauges while a replica serves, and counters from the start."""

from llmshed.admission.budget import Equation
from llmshed.admission.signals.readings import Signal
from llmshed.admission.state import ControllerState, ReplicaState
from llmshed.config.lanes import LaneSettings
from llmshed.observability.decisions import DecisionLog
from llmshed.observability.goodput import objectives_of
from llmshed.observability.metrics import Metrics
from llmshed.observability.observer import Observer
from llmshed.profile.comparison import Kind, Match

GAUGES = ("llmshed_replica_budget_factor", "llmshed_replica_metrics_up", "llmshed_replica_signal_age_seconds")


def test_the_signals_of_a_replica_are_shown_while_it_serves() -> None:
    metrics = Metrics()
    observer = Observer(metrics, DecisionLog(lambda _: None, history=10), objectives_of(LaneSettings()))
    replica = ReplicaState("gpu-0", "main", True, "h100/3", Equation(1, 0, 0, 0, 0, 1), 0, {})  # noqa: FBT003 - `up`
    for _ in observer.slices(ControllerState((replica,), draining=False, live_requests=0)):
        pass

    def shown(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, {"replica": "gpu-0"} | labels)

    assert [shown(name) for name in GAUGES] == [None] * 3
    observer.budget_governed("gpu-0", 0.49)
    observer.metrics_read("gpu-0", told=True)
    observer.signals_aged("gpu-0", 2.5)
    observer.signal_seen("gpu-0", Signal.KV)
    assert [shown(name) for name in GAUGES] == [0.49, 1.0, 2.5]
    counted = {signal: shown("llmshed_replica_signals_total", signal=signal) for signal in Signal}
    assert counted == {signal: float(signal is Signal.KV) for signal in Signal}
    observer.signals_forgotten("gpu-0")
    observer.signals_forgotten("gpu-1")
    assert [shown(name) for name in GAUGES] == [None] * 3


def test_the_likeness_of_a_replica_is_shown_as_one_state_of_each_kind_until_it_is_forgotten() -> None:
    metrics = Metrics()
    observer = Observer(metrics, DecisionLog(lambda _: None, history=10), objectives_of(LaneSettings()))

    def states() -> dict[str, float | None]:
        labels = {"replica": "gpu-0", "kind": "engine"}
        return {
            state: metrics.registry.get_sample_value("llmshed_profile_match", labels | {"state": state})
            for state in Match
        }

    observer.profile_forgotten("gpu-0")
    for match in (Match.UNVERIFIED, Match.MISMATCH):
        observer.profile_compared("gpu-0", Kind.ENGINE, match)
        assert states() == {state: float(state is match) for state in Match}
    observer.profile_kept("gpu-0", 0.5)
    assert metrics.registry.get_sample_value("llmshed_profile_budget_factor", {"replica": "gpu-0"}) == 0.5
    observer.profile_forgotten("gpu-0")
    assert set(states().values()) == {None}
    assert metrics.registry.get_sample_value("llmshed_profile_budget_factor", {"replica": "gpu-0"}) is None
