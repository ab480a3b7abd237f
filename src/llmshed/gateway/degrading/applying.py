"""All that the rungs in force do to one request, put together: one body, made from the one that was sent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from llmshed.gateway.degrading.declared import Declared, Part
from llmshed.gateway.degrading.dropping import optional_parts, without_parts, without_tools
from llmshed.gateway.degrading.thinking import with_prompt_suffix, with_template_argument
from llmshed.ladder.model import Rung, RungAction


@dataclass(frozen=True, slots=True)
class Degraded:
    """A request as rungs leave it.

    Args:
        body: the body to count and to send.
        actions: what changed it, in the order of the rungs; empty for nothing.
        pool: the pool that is to answer instead; None for the one that it came to.
        output_tokens: the least output ceiling that a rung grants; None where none lowers it. The core lowers it by
            itself, but for a drill, whose rungs are not in force.
    """

    body: Mapping[str, Any]
    actions: tuple[str, ...]
    pool: str | None = None
    output_tokens: int | None = None


def apply_rungs(
    body: Mapping[str, Any], declared: Declared, rungs: Iterable[Rung], *, takes_template_arguments: bool
) -> Degraded:
    """Do what rungs say, those that do not touch the request left out before.

    Args:
        body: the body that was sent, as its engine's adapter read it.
        declared: what its caller offers.
        rungs: the rungs, first to last.
        takes_template_arguments: whether the engine passes arguments to its chat template.
    """
    sum_of = _Sum(body, declared, takes_template_arguments)
    for rung in rungs:
        if sum_of.add(rung) and rung.action not in sum_of.actions:
            sum_of.actions.append(str(rung.action))
    return Degraded(sum_of.made(), tuple(sum_of.actions), sum_of.pool, sum_of.output_tokens)


@dataclass(slots=True)
class _Sum:
    """What several rungs come to: places in a body are those of the body that was sent, so it is made once."""

    body: Mapping[str, Any]
    declared: Declared
    takes_template_arguments: bool
    actions: list[str] = field(default_factory=list)
    gone: dict[Part, None] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    argument: str | None = None
    suffix: str | None = None
    pool: str | None = None
    output_tokens: int | None = None

    def add(self, rung: Rung) -> bool:
        """Take up a rung; says whether it changes the request."""
        match rung.action:
            case RungAction.DROP_ENRICHMENT:
                self.tools = self.declared.tools
                return self._drop(self.declared.enrichment) or bool(self.tools)
            case RungAction.SHRINK_CONTEXT:
                return self._drop(optional_parts(self.declared, rung.drop_share or 0.0))
            case RungAction.DISABLE_THINKING:
                return self._think_less(rung)
            case RungAction.SMALLER_MODEL:
                self.pool = rung.pool
                return True
            case RungAction.CAP_OUTPUT:
                given = (self.output_tokens, rung.max_output_tokens)
                self.output_tokens = min((tokens for tokens in given if tokens is not None), default=None)
                return False
            case RungAction.STOP_BULK | RungAction.PREEMPT_BULK | RungAction.SHED_INTERACTIVE:
                return False  # who is answered, not what: the core's

    def made(self) -> Mapping[str, Any]:
        """Return the body."""
        made = without_parts(without_tools(self.body, self.tools), self.gone)
        if self.argument is not None:
            made = with_template_argument(made, self.argument) or made
        if self.suffix is not None:
            made = with_prompt_suffix(made, self.suffix) or made
        return made

    def _drop(self, parts: tuple[Part, ...]) -> bool:
        self.gone.update(dict.fromkeys(parts))
        return bool(parts)

    def _think_less(self, rung: Rung) -> bool:
        if not isinstance(self.body.get("messages"), list):
            return False
        if self.takes_template_arguments and rung.template_argument is not None:
            if with_template_argument(self.body, rung.template_argument) is None:
                return False
            self.argument = rung.template_argument
        elif rung.prompt_suffix is not None:
            if with_prompt_suffix(self.body, rung.prompt_suffix) is None:
                return False
            self.suffix = rung.prompt_suffix
        elif rung.pool is not None:
            self.pool = rung.pool
        else:
            return False
        return True
