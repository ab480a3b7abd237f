"""What was shown of replicas' signals and likeness, for tests that stand in for the gateway's observer."""

from llmshed.admission.signals.readings import Signal
from llmshed.profile.comparison import Kind, Match


class SignalsSeen:
    """Keeps what it is told: the factor in force of each replica, every bad signal, whether each reading told."""

    def __init__(self) -> None:
        self.factors: dict[str, float] = {}
        self.signals: list[Signal] = []
        self.told: list[bool] = []
        self.ages: list[float] = []
        self.matches: dict[tuple[str, Kind], Match] = {}
        self.kept: dict[str, float] = {}

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

    def profile_compared(self, replica: str, kind: Kind, match: Match) -> None:
        self.matches[replica, kind] = match

    def profile_kept(self, replica: str, ratio: float) -> None:
        self.kept[replica] = ratio

    def profile_forgotten(self, replica: str) -> None:
        self.kept.pop(replica, None)
        for kind in Kind:
            self.matches.pop((replica, kind), None)
