"""What was shown of replicas' signals, for tests that stand in for the gateway's observer."""

from llmshed.admission.signals.readings import Signal


class SignalsSeen:
    """Keeps what it is told: the factor in force of each replica, every bad signal, whether each reading told."""

    def __init__(self) -> None:
        self.factors: dict[str, float] = {}
        self.signals: list[Signal] = []
        self.told: list[bool] = []
        self.ages: list[float] = []

    def budget_governed(self, replica: str, factor: float) -> None:
        self.factors[replica] = factor

    def signal_seen(self, replica: str, signal: Signal) -> None:
        assert replica
        self.signals.append(signal)

    def metrics_read(self, replica: str, *, told: bool) -> None:
        assert replica
        self.told.append(told)

    def signals_aged(self, replica: str, seconds: float) -> None:
        assert replica
        self.ages.append(seconds)

    def signals_forgotten(self, replica: str) -> None:
        del self.factors[replica]
