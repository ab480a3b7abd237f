"""A simulated replica that tells what reaches it and what comes of it."""

from collections.abc import Callable
from math import inf

from llmshed.simulation.limits import LimitProblem, OutputPlan
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Result
from llmshed.simulation.schedule import (
    Call,
    Called,
    Close,
    FailStep,
    Leave,
    Resume,
    Stall,
    Submit,
    TakePermit,
)
from llmshed.simulation.sequences import Sequence, SequenceView

Tell = Callable[[Called | Result], None]


class RecordedModel:
    """Any model, unchanged, whose calls and results go to `tell` in the order in which they happen.

    A call that carries no time is told at the latest time that the model was given: nothing that was due since then
    can have happened before it.
    """

    def __init__(self, model: ReplicaModel, tell: Tell) -> None:
        """Stand before `model`."""
        self._model = model
        self._tell = tell
        self._now = 0.0

    def close(self) -> None:
        """Tell that no more is recorded."""
        self._called(Close())

    @property
    def queue_size(self) -> int:
        """As the model."""
        return self._model.queue_size

    @property
    def batch_size(self) -> int:
        """As the model."""
        return self._model.batch_size

    @property
    def held_kv_tokens(self) -> int:
        """As the model."""
        return self._model.held_kv_tokens

    @property
    def permits_in_use(self) -> int:
        """As the model."""
        return self._model.permits_in_use

    @property
    def next_step_at(self) -> float | None:
        """As the model."""
        return self._model.next_step_at

    @property
    def next_change_at(self) -> float | None:
        """As the model."""
        return self._model.next_change_at

    def take_permit(self, key: int) -> bool:
        """Take a permit of the model, and tell whether one was free."""
        granted = self._model.take_permit(key)
        self._called(TakePermit(key, granted))
        return granted

    def submit(self, sequence: Sequence, now: float) -> OutputPlan | LimitProblem:
        """Submit to the model, and tell the sequence and whether it was accepted."""
        self._now = max(self._now, now)
        plan = self._model.submit(sequence, now)
        self._called(Submit(sequence, isinstance(plan, OutputPlan)))
        return plan

    def leave(self, key: int) -> None:
        """Tell it and pass it on."""
        self._called(Leave(key))
        self._model.leave(key)

    def fail_step(self, message: str) -> None:
        """Tell it and pass it on."""
        self._called(FailStep(message))
        self._model.fail_step(message)

    def stall(self, now: float, seconds: float) -> None:
        """Tell it and pass it on."""
        self._now = max(self._now, now)
        self._called(Stall(None if seconds == inf else seconds))
        self._model.stall(now, seconds)

    def resume(self, now: float) -> None:
        """Tell it and pass it on."""
        self._now = max(self._now, now)
        self._called(Resume())
        self._model.resume(now)

    def advance(self, now: float) -> list[Result]:
        """Advance the model, and tell each result."""
        results = self._model.advance(now)
        self._now = max(self._now, now)
        for result in results:
            self._tell(result)
        return results

    def output_tokens(self, key: int) -> int:
        """As the model."""
        return self._model.output_tokens(key)

    def cached_tokens(self, prompt: PromptBlocks | None, input_tokens: int) -> int:
        """As the model."""
        return self._model.cached_tokens(prompt, input_tokens)

    def sequences(self) -> list[SequenceView]:
        """As the model."""
        return self._model.sequences()

    def check(self) -> tuple[str, ...]:
        """As the model."""
        return self._model.check()

    def _called(self, call: Call) -> None:
        self._tell(Called(self._now, call))
