"""A core that does what the test says, and a clock that stands still until it is moved."""

from typing import TYPE_CHECKING

from fakes.door import policy
from llmshed.admission.actions import Action
from llmshed.admission.controller import AdmissionController
from llmshed.admission.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    def wall(self) -> float:
        return 0.0


class ScriptedCore(AdmissionController):
    """A core that does nothing of itself; `heard` are the events that it was told."""

    def __init__(self) -> None:
        super().__init__(policy())
        self.heard: list[Event] = []
        self.script: Callable[[Event], list[Action]] = lambda _: []
        self.wakeup: float | None = None

    def handle(self, event: Event, now: float) -> list[Action]:
        assert now >= 0
        self.heard.append(event)
        return self.script(event)

    def next_wakeup(self) -> float | None:
        return self.wakeup

    def check(self) -> tuple[str, ...]:
        return ()
