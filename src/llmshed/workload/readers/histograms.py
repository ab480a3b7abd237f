"""Lengths as Prometheus' histograms hold them, and which histograms hold them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from llmshed.admission.request import Intent
from llmshed.workload.quantiles import QuantileFunction


@dataclass(frozen=True, slots=True)
class Family:
    """Two histograms of one program that tell of the same requests.

    Args:
        input_name: histogram of input tokens; its count is that of all requests that came.
        output_name: histogram of output tokens of those that were served.
        kind_label: label that parts requests into kinds; None when there is none.
    """

    input_name: str
    output_name: str
    kind_label: str | None = None


FAMILIES = (
    Family("llmshed_input_tokens", "llmshed_output_tokens", "lane"),
    Family("tgi_request_input_length", "tgi_request_generated_tokens"),
    Family("vllm:request_prompt_tokens", "vllm:request_generation_tokens"),
)
"""In order of preference: a gateway also sees what it refused."""

INTENTS = {"interactive": Intent.INTERACTIVE, "bulk": Intent.BULK}
"""Lanes whose requests declare an intent again; those of `overflow` and `none` were classified by size, and will be."""


@dataclass(slots=True)
class Buckets:
    """Counts by upper edge, as increments over some time: each counts all values up to its edge."""

    cumulative: dict[float, float] = field(default_factory=dict)

    def add(self, edge: float, increment: float) -> None:
        """Count `increment` further values up to `edge`; several series of one edge add up."""
        self.cumulative[edge] = self.cumulative.get(edge, 0.0) + increment

    @property
    def count(self) -> float:
        """Return how many values there are: all buckets hold at most those of the widest."""
        return max(self.cumulative.values(), default=0.0)

    def quantiles(self) -> QuantileFunction | None:
        """Return the distribution, straight inside each bucket; None without values.

        Values above the last finite edge count as that edge, as in PromQL's `histogram_quantile`: they are at least
        that. A bucket that counts less than a narrower one, torn by a scrape, counts as much as that one.
        """
        finite = sorted((edge, count) for edge, count in self.cumulative.items() if math.isfinite(edge) and edge > 0)
        if not finite or self.count <= 0:
            return None
        points = [(0.0, 0.0), *_risen(finite)]
        shares, values = [], []
        for (low, before), (high, upto) in pairwise(points):
            if upto > before:
                shares += [before / self.count, upto / self.count]
                values += [low, high]
        widest, within = points[-1]
        if within < self.count:
            shares += [within / self.count, 1.0]
            values += [widest, widest]
        return QuantileFunction(shares, values)


def _risen(finite: Iterable[tuple[float, float]]) -> Iterable[tuple[float, float]]:
    most = 0.0
    for edge, count in finite:
        most = max(most, count)
        yield edge, most
