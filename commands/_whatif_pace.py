"""When the requests of `llmshed whatif` come, where they do not come as their trace says."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from llmshed.errors import TraceError
from llmshed.workload.arrivals import ArrivalProcess

from ._input import shown_name

if TYPE_CHECKING:
    from ._whatif_traffic import Traffic

MOST_RATE = 1e6
"""Requests a second; a trace that is faster has no gaps to speak of."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A process and its rate.

    Args:
        process: how the gaps are.
        rate_per_second: requests a second at 1x.
    """

    process: ArrivalProcess
    rate_per_second: float

    def seconds(self, requests: int) -> float:
        """Return about how long so many requests arrive."""
        return (requests - 1) / self.rate_per_second


def pace_of(process: ArrivalProcess | None, rate_per_second: float | None, traffic: "Traffic") -> Pace | None:
    """Return the pace at which traffic is to come; None where it comes as its trace says.

    Args:
        process: how the gaps are; None for the trace's own.
        rate_per_second: how many requests come a second; None for as many as the trace has, whose mean gap is kept.
        traffic: what is to come.

    Raises:
        TraceError: the trace has no rate, and none is given.
    """
    if process is None:
        return None
    if rate_per_second is not None:
        return Pace(process, rate_per_second)
    told = traffic.summary
    if told.requests - 1 < MOST_RATE * told.duration_seconds and told.requests > 1:
        return Pace(process, (told.requests - 1) / told.duration_seconds)
    raise TraceError(
        f"{shown_name(traffic.name)}: all of its requests come at once, which is no rate for --arrivals {process.name}:"
        " give one with --rate"
    )
