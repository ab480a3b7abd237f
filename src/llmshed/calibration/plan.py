"""What a calibration is asked to find: for which traffic, under which objectives, in what time."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """A request of the mix by its sizes, in tokens; `lane` names its objective."""

    input_tokens: int
    ceiling_tokens: int
    lane: str

    @property
    def reserved_tokens(self) -> int:
        """Return what admission would reserve for it."""
        return self.input_tokens + self.ceiling_tokens


@dataclass(frozen=True, slots=True)
class Objective:
    """A lane's objectives as its clients are promised them, in seconds."""

    ttft_seconds: float
    tpot_seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """A calibration.

    Args:
        mix: requests of the traffic that the replica is to carry, each as likely as the other.
        objectives: objectives by lane; those of each lane in the mix.
        engine_share_ratio: part of a TTFT objective that is the engine's, from dispatch to first token.
        max_duration_seconds: time after which nothing more is sent, whatever was found.
        max_input_tokens: longest prompt that the engine takes; None when it does not tell.
        first_level_tokens: reserved tokens at which the first sweep begins; None begins with a few requests. A tenth of
            the engine's own figure for its KV cache is a good one.

    Raises:
        ValueError: the mix is empty, a lane has no objective, or a number is out of range.
    """

    mix: tuple[Shape, ...]
    objectives: Mapping[str, Objective]
    engine_share_ratio: float = 0.7
    max_duration_seconds: float = 900.0
    max_input_tokens: int | None = None
    first_level_tokens: int | None = None

    def __post_init__(self) -> None:
        if not self.mix:
            raise ValueError("the mix holds no request")
        if not 0 < self.engine_share_ratio <= 1:
            raise ValueError(f"an engine share is above 0 and at most 1, not {self.engine_share_ratio:g}")
        if not self.max_duration_seconds > 0:
            raise ValueError(f"a duration is above 0 s, not {self.max_duration_seconds:g}")
        if missing := {shape.lane for shape in self.mix} - set(self.objectives):
            raise ValueError(f"no objective is given for the lane {', '.join(sorted(missing))}")
        if smallest := [shape for shape in self.mix if min(shape.input_tokens, shape.ceiling_tokens) < 1]:
            raise ValueError(f"input and ceiling are at least 1 token, not {smallest[0]}")

    def ttft_bound_seconds(self, lane: str) -> float:
        """Return the engine's share of a lane's TTFT objective."""
        return self.engine_share_ratio * self.objectives[lane].ttft_seconds

    @property
    def tightest_ttft_seconds(self) -> float:
        """Return the least of those shares over the mix."""
        return min(self.ttft_bound_seconds(shape.lane) for shape in self.mix)

    def tpot_bound_seconds(self, lane: str) -> float:
        """Return a lane's TPOT objective: no queue takes a part of it, so all of it is the engine's."""
        return self.objectives[lane].tpot_seconds
