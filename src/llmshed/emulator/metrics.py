"""TGI's `/metrics`: what is recorded, and its text.

The text is written here because the client library appends `_total` to every counter, which TGI's exporter does not.
As there, a metric appears once it has been used.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from llmshed.emulator.decimals import decimal_text
from llmshed.emulator.metric_table import DESCRIBED_SINCE, QUANTILES, TABLE, Kind, edges_of
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import StepsEnded
from llmshed.simulation.versions import parse_version

Label = tuple[str, str] | None
MOST_SAMPLES = 1024
"""Values that a summary keeps; the newest ones."""


@dataclass(slots=True)
class _Distribution:
    """Values seen by a histogram or a summary."""

    counts: list[int]
    total: float = 0.0
    seen: int = 0
    samples: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))


class TgiMetrics:
    """The metrics of one replica."""

    def __init__(self, parameters: ReplicaParameters) -> None:
        """Start without any value."""
        self._parameters = parameters
        self._describes = parse_version(parameters.version) >= DESCRIBED_SINCE
        self._values: dict[str, dict[Label, float]] = {}
        self._seen: dict[str, dict[Label, _Distribution]] = {}
        self._edges: dict[str, tuple[float, ...]] = {}

    def count(self, name: str, label: Label = None, times: int = 1) -> None:
        """Add to a counter."""
        series = self._values.setdefault(name, {})
        series[label] = series.get(label, 0) + times

    def put(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._values.setdefault(name, {})[None] = value

    def observe(self, name: str, value: float, label: Label = None) -> None:
        """Add a value to a histogram or a summary; times in seconds, lengths in tokens."""
        edges = self._edges_of(name)
        series = self._seen.setdefault(name, {})
        distribution = series.setdefault(label, _Distribution([0] * (len(edges) + 1)))
        distribution.counts[bisect_left(edges, value)] += 1
        distribution.total += value
        distribution.seen += 1
        if TABLE[name].kind is Kind.SUMMARY:
            distribution.samples.append(value)

    def steps(self, steps: StepsEnded) -> None:
        """Record engine calls; of several that were told together each is taken to have lasted as long."""
        method = ("method", steps.kind.value)
        self.count("tgi_batch_inference_count", method, steps.count)
        if steps.joined:
            self.observe("tgi_batch_next_size", steps.joined)
        if steps.join_reason is not None:
            self.count("tgi_batch_concat", ("reason", steps.join_reason.value))
        if steps.failed:
            self.count("tgi_batch_inference_failure", method)
            return
        self.count("tgi_batch_inference_success", method, steps.count)
        for _ in range(steps.count):
            seconds = steps.seconds / steps.count
            self.observe("tgi_batch_inference_duration", seconds, method)
            # The model knows one duration of a step: all of it is the forward pass, none detokenising or filtering.
            self.observe("tgi_batch_forward_duration", seconds, method)
            self.observe("tgi_batch_decode_duration", 0.0, method)
            self.observe("tgi_batch_filter_duration", 0.0, method)
        if steps.join_reason is not None:
            self.observe("tgi_batch_concat_duration", 0.0, ("method", "decode"))

    def render(self) -> str:
        """Return the text of `/metrics`."""
        return "".join(f"{line}\n" for line in self._lines())

    def _edges_of(self, name: str) -> tuple[float, ...]:
        if name not in self._edges:
            limits = self._parameters
            self._edges[name] = edges_of(name, limits.max_input_tokens, limits.max_total_tokens)
        return self._edges[name]

    def _lines(self) -> Iterator[str]:
        for name, row in TABLE.items():
            if name not in self._values and name not in self._seen:
                continue
            if row.description is not None and self._describes:
                yield f"# HELP {name} {row.description}"
            yield f"# TYPE {name} {row.kind.value}"
            for label, value in self._values.get(name, {}).items():
                yield f"{name}{_labels(label)} {decimal_text(value)}"
            for label, distribution in self._seen.get(name, {}).items():
                yield from self._distribution(name, label, distribution)
            yield ""

    def _distribution(self, name: str, label: Label, seen: _Distribution) -> Iterator[str]:
        if TABLE[name].kind is Kind.SUMMARY:
            ordered = sorted(seen.samples)
            for quantile in QUANTILES:
                value = ordered[round(quantile * (len(ordered) - 1))]
                yield f"{name}{_labels(label, ('quantile', decimal_text(quantile)))} {decimal_text(value)}"
        else:
            below = 0
            for edge, count in zip(self._edges_of(name), seen.counts, strict=False):
                below += count
                yield f"{name}_bucket{_labels(label, ('le', decimal_text(edge)))} {below}"
            yield f"{name}_bucket{_labels(label, ('le', '+Inf'))} {seen.seen}"
        yield f"{name}_sum{_labels(label)} {decimal_text(seen.total)}"
        yield f"{name}_count{_labels(label)} {seen.seen}"


def _labels(label: Label, extra: tuple[str, str] | None = None) -> str:
    pairs = [pair for pair in (label, extra) if pair is not None]
    return "{" + ",".join(f'{name}="{value}"' for name, value in pairs) + "}" if pairs else ""
