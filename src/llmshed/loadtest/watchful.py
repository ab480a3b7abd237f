"""Sees by a replica's own counter whether prompts came to it that were not sent here, and ends a run when some did."""

from typing import TYPE_CHECKING, Final

from llmshed.calibration.events import Event, Read
from llmshed.errors import ExitCode, LlmshedError
from llmshed.loadtest.client import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from llmshed.admission.signals.readings import ReplicaReading
    from llmshed.calibration.events import Action
    from llmshed.engines.base import Activity
    from llmshed.loadtest.client import Client
    from llmshed.loadtest.driver import Machine
    from llmshed.loadtest.sender import ReplicaSender
    from llmshed.workload.asks import Ask, Sample

SPARE_TOKENS: Final = 512
"""Prompt tokens beyond those sent that show nothing yet: probes of health, and rounding in the engine's own count."""
SPARE_RATIO: Final = 0.01


class DisturbedError(LlmshedError):
    """Others use the replica that is measured."""

    exit_code = ExitCode.TEMPORARY


class WatchfulSender:
    """Sends to a replica, and sees by its own counter whether prompts came to it that were not sent here.

    Args:
        sender: what sends.
        client: the replica.
        kv_tokens: size of its KV cache; None where it does not tell.
        before: what it did before anything was sent.
    """

    def __init__(
        self, sender: "ReplicaSender", client: "Client", kv_tokens: int | None, before: "Activity | None"
    ) -> None:
        self._sender = sender
        self._client = client
        self._kv_tokens = kv_tokens
        self._taken_before = None if before is None else before.prompt_tokens_total
        self._sent_tokens = 0
        self.foreign_tokens = 0.0

    async def carry(self, ask: "Ask", planned_at: float, on_first_token: "Callable[[], None]") -> "Sample":
        """Send an ask and return what came of it; see `ReplicaSender.carry`."""
        self._sent_tokens += ask.input_tokens
        return await self._sender.carry(ask, planned_at, on_first_token)

    async def read(self) -> "ReplicaReading":
        """Read the replica's signals, and whether it took more prompts than were sent.

        Raises:
            EngineError: they cannot be read.
        """
        body = await self._client.page(METRICS)
        taken = self._client.engine.read_activity(body).prompt_tokens_total
        if taken is not None and self._taken_before is not None:
            known = self._sent_tokens * (1 + SPARE_RATIO) + SPARE_TOKENS
            self.foreign_tokens = max(0.0, taken - self._taken_before - known)
        return self._client.engine.read_metrics(body, self._kv_tokens, self._client.clock.now())


class UndisturbedMachine:
    """A machine as its driver sees it, which prompts of others end.

    Args:
        machine: what decides.
        sender: knows what others sent.
    """

    def __init__(self, machine: "Machine", sender: WatchfulSender) -> None:
        self._machine = machine
        self._sender = sender
        self._disturbed = False

    def handle(self, event: Event, now: float) -> "list[Action]":
        """Pass an event on.

        Raises:
            DisturbedError: somebody else uses the replica; once, since what is in flight is told of when it ends.
        """
        actions = self._machine.handle(event, now)
        if isinstance(event, Read) and self._sender.foreign_tokens and not self._disturbed:
            self._disturbed = True
            raise DisturbedError(
                f"the replica took about {self._sender.foreign_tokens:,.0f} prompt tokens that were not sent from here:"
                " somebody else uses it, and its figures are not those of one load alone"
            )
        return actions

    def next_wakeup(self) -> float | None:
        """Return when the machine wants to be woken."""
        return self._machine.next_wakeup()
