"""From traffic to asks: what is sent, when, and as whom."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from llmshed.loadtest.prompts import Part
from llmshed.workload.asks import Ask
from llmshed.workload.ceilings import CeilingRule, ceiling_tokens

if TYPE_CHECKING:
    from llmshed.workload.request import TracedRequest

DEFAULT_CEILING: Final = 1024
"""For a request that names no ceiling, where no gateway is there to set its lane's."""


class Prefixes(StrEnum):
    """What prompts share."""

    NONE = "none"
    """Nothing: no prefix cache can help."""
    TRACE = "trace"
    """What those of the trace shared, as far as it tells."""


class Lengths(StrEnum):
    """Where an answer ends."""

    MODEL = "model"
    """Where the model ends it, or at the ceiling that the request asks for."""
    TRACE = "trace"
    """Where that of the trace ended: that length is the ceiling, and the engine is told to run to it where it can."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A request that is to be sent.

    Args:
        at_seconds: when, after the start.
        ask: what.
        parts: what its prompt begins with.
        headers: what it declares beside its body.
    """

    at_seconds: float
    ask: Ask
    parts: tuple[Part, ...]
    headers: Mapping[str, str]


@dataclass(slots=True)
class Planner:
    """Turns traced requests into asks; each of several sequences becomes a request of its own.

    Args:
        rule: where output ceilings come from.
        lengths: where answers end.
        prefixes: what prompts share.
        least_tokens: shortest prompt that can be made; shorter ones of the trace are sent as long as this.
        declares: whether intents, classes and sessions are told in headers, as a gateway reads them.

    Attributes:
        raised: asks whose prompt was made longer for that.
    """

    rule: CeilingRule
    lengths: Lengths
    prefixes: Prefixes
    least_tokens: int
    declares: bool
    raised: int = 0

    def planned(self, requests: "Iterable[TracedRequest]") -> Iterator[Planned]:
        """Yield what to send, in order of arrival."""
        for number, request in enumerate(requests):
            for copy in range(request.copies):
                yield self._planned(request, f"{number}" if request.copies == 1 else f"{number}.{copy}")

    def _planned(self, request: "TracedRequest", name: str) -> Planned:
        self.raised += request.input_tokens < self.least_tokens
        exact = self.lengths is Lengths.TRACE
        asked = request.true_output_tokens if exact else ceiling_tokens(self.rule, request)
        ask = Ask(
            id=name,
            input_tokens=max(request.input_tokens, self.least_tokens),
            ceiling_tokens=DEFAULT_CEILING if asked is None else max(1, asked),
            runs_to_ceiling=exact,
            lane=None if request.intent is None else request.intent.value,
        )
        return Planned(request.at_seconds, ask, self._parts(request), self._headers(request))

    def _parts(self, request: "TracedRequest") -> tuple[Part, ...]:
        blocks = request.blocks
        if self.prefixes is Prefixes.NONE or blocks is None:
            return ()
        return tuple(Part(f"block/{one}", blocks.unit_tokens) for one in blocks.ids)

    def _headers(self, request: "TracedRequest") -> Mapping[str, str]:
        if not self.declares:
            return {}
        told = {
            "x-llmshed-intent": request.intent,
            "x-llmshed-class": request.priority_class,
            "x-llmshed-session": request.session,
        }
        return {name: str(value) for name, value in told.items() if value is not None}
