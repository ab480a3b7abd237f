"""What clients see of a try that was not served, and when they come back."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from llmshed.admission.reasons import Reason
from llmshed.admission.retry_after import RetryRule
from llmshed.admission.verdict import Verdict
from llmshed.whatif.replicas import EngineRefusal
from llmshed.whatif.setting import Setting
from llmshed.whatif.visits import Visit

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and retry headers of an answer that is no answer.

    Args:
        status: the HTTP status; 200 where the failure is an event of a stream that had begun.
        retry_after_seconds: Retry-After; None where none is sent.
        should_not_retry: whether `x-should-retry: false` is sent.
    """

    status: int
    retry_after_seconds: float | None = None
    should_not_retry: bool = False


class ClientModel(Protocol):
    """How clients take it."""

    def wait_seconds(self, answer: Answer, tries: int, rng: "Random") -> float | None:
        """Return how long a client waits before it tries again; None when it gives up.

        Args:
            answer: what it saw.
            tries: how often it has tried, at least 1.
            rng: where its jitter comes from.
        """


class ClientsAtWork:
    """Tells clients of refusals as the gateway does, and asks their model what they make of it."""

    def __init__(self, model: ClientModel, setting: Setting, rng: "Random") -> None:
        """Take the numbers of the setting; `rng` draws the jitter of both sides."""
        self._model = model
        self._rng = rng
        self._rule = RetryRule(rng.random, setting.retry_jitter_ratio, setting.max_retry_after_seconds)

    def after_verdict(self, visit: Visit, reason: Reason, verdict: Verdict) -> float | None:
        """Return how long the client waits after the gate refused or evicted it; None when it gives up."""
        status = reason.row.status
        advice = self._rule.advise(reason, status, verdict.retry_after_seconds)
        wait = None if advice.wait_seconds is None else float(advice.wait_seconds)
        return self._wait(visit, Answer(status, wait, should_not_retry=advice.should_not))

    def after_engine_refusal(self, visit: Visit, refusal: EngineRefusal) -> float | None:
        """Return how long the client waits after the engine refused it; TGI sends no Retry-After (tgi.md 3.7).

        A stream has its status before the engine has looked at the request, so there a refusal is an event under 200.
        """
        refused = 429 if refusal is EngineRefusal.OVERLOADED else 422
        return self._wait(visit, Answer(200 if visit.traced.streamed else refused))

    def after_failure(self, visit: Visit) -> float | None:
        """Return how long the client waits after the engine lost its request: a retry is told not to be safe."""
        return self._wait(visit, Answer(Reason.UPSTREAM_ERROR.row.status, should_not_retry=True))

    def _wait(self, visit: Visit, answer: Answer) -> float | None:
        return self._model.wait_seconds(answer, visit.tries, self._rng)
