"""Requests that knock at a gate without a world behind it; what an engine would tell, the test tells."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fakes.stages import stage, traced
from llmshed.admission.actions import Action
from llmshed.admission.events import Arrived, ReplicaUp, Tick
from llmshed.admission.replica import Replica
from llmshed.admission.request import Request
from llmshed.whatif.gate import Gate
from llmshed.whatif.gates.work import Work, work_of
from llmshed.whatif.setting import Setting


class Knocker:
    """A gate on a setting, whose requests have keys from 1 on."""

    def __init__(self, build: Callable[[Setting], Gate], setting: Setting | None = None) -> None:
        self.setting = stage() if setting is None else setting
        self.gate = build(self.setting)
        self.keys = 0

    def knock(self, input_tokens: int = 100, output: int = 50, now: float = 0.0, **changed: Any) -> list[Action]:
        """Let a request arrive and return the actions about it.

        `true_output` is its length, by default the ceiling, and `first_at` when it first came, by default now.
        """
        self.keys += 1
        length, blocks = changed.pop("true_output", output), changed.pop("blocks", None)
        first_at = changed.pop("first_at", now)
        made = request(self.setting, self.keys, input_tokens, output, arrived_at=now, **changed)
        self.setting.traced[self.keys] = traced(
            first_at, input_tokens, length, asked_output_tokens=output, blocks=blocks
        )
        return self.tell(Arrived(made), now)

    def tell(self, event: Any, now: float) -> list[Action]:
        actions = self.gate.handle(event, now)
        assert self.gate.check() == ()
        return actions

    def tick_until(self, until: float) -> list[tuple[float, Action]]:
        """Return what the gate does by itself up to an instant, and when."""
        done: list[tuple[float, Action]] = []
        while (at := self.gate.next_wakeup()) is not None and at <= until:
            done += [(at, action) for action in self.tell(Tick(), at)]
        return done

    def come_up(self, name: str, now: float, **budget: Any) -> list[Action]:
        """Let a replica come up with another budget."""
        spec = next(spec for spec in self.setting.specs if spec.name == name)
        return self.tell(ReplicaUp(replace(spec, budget=replace(spec.budget, **budget))), now)


def request(setting: Setting, key: int, input_tokens: int = 100, output: int | None = 50, **changed: Any) -> Request:
    return Request(
        key,
        **{
            "tenant": setting.default_tenant,
            "model": setting.model,
            "prompt_tokens": (input_tokens,),
            "asked_output_tokens": output,
            **changed,
        },
    )


def replicas(setting: Setting) -> list[Replica]:
    return [Replica(spec) for spec in setting.specs]


def work(setting: Setting, key: int = 1, input_tokens: int = 100, output: int | None = 50, **changed: Any) -> Work:
    made = work_of(request(setting, key, input_tokens, output, **changed), setting.policy, replicas(setting), order=key)
    assert isinstance(made, Work)
    return made
