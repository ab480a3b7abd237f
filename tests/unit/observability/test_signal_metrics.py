"""What a scrape shows of replicas' signals: gauges while a replica serves, and counters from the start."""

from llmshed.admission.budget import Equation
from llmshed.admission.signals.readings import Signal
from llmshed.admission.state import ControllerState, ReplicaState
from llmshed.config.lanes import LaneSettings
from llmshed.observability.decisions import DecisionLog
from llmshed.observability.goodput import objectives_of
from llmshed.observability.metrics import Metrics
from llmshed.observability.observer import Observer

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
