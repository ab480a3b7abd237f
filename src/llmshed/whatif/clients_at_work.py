"""What clients see of a try that was not served, and when they come back."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from llmshed.admission.reasons import Reason
from llmshed.admission.retry_after import RetryRule
from llmshed.admission.verdict import Verdict
from llmshed.whatif.manners import refusal_status
from llmshed.whatif.replicas import EngineRefusal
from llmshed.whatif.setting import Setting
from llmshed.whatif.visits import Visit
from llmshed.workload.clients import ClientModel, Refusal, retry_wait_seconds

if TYPE_CHECKING:
    from random import Random


Manner = Callable[[Visit, Refusal, "Random"], float | None]
"""Returns how long the client of a visit waits after a refusal, None when it gives up; draws from the generator."""


def manner_of(model: ClientModel) -> Manner:
    """Return the manner in which all clients are of one kind."""
    return partial(_as_all, model)


class ClientsAtWork:
    """Tells clients of refusals as the gateway does, and asks their model what they make of it."""

    def __init__(self, clients: ClientModel | Manner, setting: Setting, rng: "Random") -> None:
        """Take one kind of client for all or a manner that tells them apart; `rng` draws the jitter of both sides."""
        self._manner = manner_of(clients) if isinstance(clients, ClientModel) else clients
        self._parameters = setting.parameters
        self._rng = rng
        self._rule = RetryRule(rng.random, setting.retry_jitter_ratio, setting.max_retry_after_seconds)

    def after_verdict(self, visit: Visit, reason: Reason, verdict: Verdict) -> float | None:
        """Return how long the client waits after the gate refused or evicted it; None when it gives up."""
        advice = self._rule.advise(reason, reason.row.status, verdict.retry_after_seconds)
        wait = None if advice.wait_ms is None else advice.wait_ms / 1000
        return self._wait(visit, Refusal(reason.row.status, wait, False if advice.should_not else None))

    def after_engine_refusal(self, visit: Visit, refusal: EngineRefusal) -> float | None:
        """Return how long the client waits after the engine refused it; None when it gives up.

        An event under 200 is for no client a reason to retry, unless it retries whatever happens.
        """
        status = refusal_status(self._parameters, refusal, streamed=visit.traced.streamed)
        return self._wait(visit, Refusal(status))

    def after_failure(self, visit: Visit) -> float | None:
        """Return how long the client waits after the engine lost its request: a retry is told not to be safe."""
        return self._wait(visit, Refusal(Reason.UPSTREAM_ERROR.row.status, should_retry=False))

    def _wait(self, visit: Visit, refusal: Refusal) -> float | None:
        return self._manner(visit, refusal, self._rng)


def _as_all(model: ClientModel, visit: Visit, refusal: Refusal, rng: "Random") -> float | None:
    return retry_wait_seconds(model, refusal, visit.tries - 1, rng)
