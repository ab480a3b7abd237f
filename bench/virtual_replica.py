"""A simulated replica that a calibration drives in virtual time: actions in, events out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp
from random import Random

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.simulation.building import Parameters, build_model
from llmshed.simulation.cost import StepTimes, StepWork
from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.results import Ended, Failed, FirstToken, Preempted
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence
from llmshed.workload.asks import Ask, Outcome, Sample


@dataclass(frozen=True, slots=True)
class NoisyStepTimes(StepTimes):
    """Step times with a log-normal factor of mean 1 for each step that is planned.

    Args:
        spread: standard deviation of its logarithm.
        rng: what it is drawn from.
    """

    spread: float = 0.0
    rng: Random = field(default_factory=Random)

    def seconds(self, work: StepWork) -> float:
        """Return how long a step over this much work takes this time."""
        return StepTimes.seconds(self, work) * exp(self.rng.gauss(-self.spread * self.spread / 2, self.spread))


class VirtualReplica:
    """One simulated replica and the asks that it works on.

    Args:
        parameters: the replica.
        natural_tokens: output after which the model ends by itself.
        ignores_ends: whether the engine can be told to run an answer to its ceiling all the same; TGI cannot.
    """

    def __init__(
        self, parameters: Parameters, natural_tokens: Callable[[Ask], int], *, ignores_ends: bool = True
    ) -> None:
        self._kv_tokens = parameters.kv_tokens
        self.model = build_model(parameters)
        self._natural = natural_tokens
        self._ignores_ends = ignores_ends
        self._asks: dict[int, tuple[Ask, float]] = {}
        self._keys: dict[str, int] = {}
        self._first: dict[int, float] = {}
        self._next_key = 0
        self.preemptions = 0

    def send(self, ask: Ask, now: float) -> Sample | None:
        """Give an ask to the engine; returns its sample when that refuses it at once."""
        key, self._next_key = self._next_key, self._next_key + 1
        if not self.model.take_permit(key):
            return Sample(ask, now, now, (), now, Outcome.REFUSED, 429, 0, "Model is overloaded")
        whole = ask.runs_to_ceiling and self._ignores_ends
        natural = ask.ceiling_tokens if whole else min(self._natural(ask), ask.ceiling_tokens)
        end = NaturalEnd(natural, FinishReason.EOS)
        sequence = Sequence(key, ask.input_tokens, asked_output_tokens=ask.ceiling_tokens, natural_end=end)
        if not isinstance(self.model.submit(sequence, now), OutputPlan):
            return Sample(ask, now, now, (), now, Outcome.FAILED, 422, 0, "exceeds a limit of the engine")
        self._asks[key], self._keys[ask.id] = (ask, now), key
        return None

    def cancel(self, ask_id: str, now: float) -> Sample | None:
        """Close the connection of an ask; None when it is not in flight."""
        key = self._keys.pop(ask_id, None)
        if key is None:
            return None
        self.model.leave(key)
        ask, sent_at = self._asks.pop(key)
        times = (self._first.pop(key),) if key in self._first else ()
        return Sample(ask, sent_at, sent_at, times, now, Outcome.CANCELLED, None, 0)

    def advance(self, now: float) -> list[str | Sample]:
        """Bring the engine to `now`; returns first tokens, as ids, and samples, in order."""
        told: list[str | Sample] = []
        for result in self.model.advance(now):
            match result:
                case FirstToken(key, at) if key in self._asks:
                    self._first[key] = at
                    told.append(self._asks[key][0].id)
                case Ended(key=key, output_tokens=tokens, at=at) if key in self._asks:
                    told.append(self._sample(key, at, tokens, Outcome.FINISHED, ""))
                case Failed(key, message) if key in self._asks:
                    told.append(self._sample(key, now, 0, Outcome.FAILED, message))
                case Preempted():
                    self.preemptions += 1
                case _:
                    pass
        return told

    def read(self, now: float) -> ReplicaReading:
        """Return what the engine's metrics tell."""
        return ReplicaReading(
            now, self.model.queue_size, min(self.model.held_kv_tokens / self._kv_tokens, 1.0), self.preemptions
        )

    def _sample(self, key: int, at: float, tokens: int, outcome: Outcome, detail: str) -> Sample:
        ask, sent_at = self._asks.pop(key)
        del self._keys[ask.id]
        first = self._first.pop(key, None)
        times = () if first is None else (first, at) if tokens > 1 else (first,)
        return Sample(ask, sent_at, sent_at, times, at, outcome, 200 if not detail else 500, tokens, detail)
