"""Faults on demand: which are on, and for how many requests still."""

from dataclasses import dataclass
from math import inf
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class FaultPlan(BaseModel):
    """Faults that meet requests; absent ones are off.

    Args:
        die_after_events: abort the connection once a stream has sent so many events; a whole answer is aborted after
            so many tokens.
        stall_after_events: fall silent after so many events, with the connection open.
        fail_after_events: fail the engine's batch, all its sequences with it (TGI's 424), after so many events.
        overloaded: answer as if no permit were free: 429, or an error event in a stream.
        unhealthy: `/health` answers 503, as when no shard answers; not counted by `times`.
        first_byte_delay_seconds: wait before the status line.
        idle_close_seconds: close a kept-alive connection so long after an answer.
        times: number of generating requests that still meet the faults above; None for all, until they are cleared.
            `idle_close_seconds` is not counted.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    die_after_events: int | None = Field(default=None, ge=0, le=10**9)
    stall_after_events: int | None = Field(default=None, ge=0, le=10**9)
    fail_after_events: int | None = Field(default=None, ge=0, le=10**9)
    overloaded: bool = False
    unhealthy: bool = False
    first_byte_delay_seconds: float = Field(default=0.0, ge=0, le=86_400)
    idle_close_seconds: float | None = Field(default=None, ge=0, le=86_400)
    times: int | None = Field(default=None, ge=0, le=10**9)


@dataclass(frozen=True, slots=True)
class FaultOrder:
    """What one `POST /_simulate/faults` asks for: a plan, and things done at once.

    Args:
        plan: replaces the plan in force; None leaves it.
        stall_seconds: hold the whole engine for so long; infinity until the next order, 0 ends a stall.
        fail_batch: message with which the running step fails; None for no failure.
        refuse_seconds: close the listening socket for so long.
    """

    plan: FaultPlan | None = None
    stall_seconds: float | None = None
    fail_batch: str | None = None
    refuse_seconds: float | None = None


_PLAN_FIELDS = tuple(FaultPlan.model_fields)
_SWITCHES = ("overloaded", "unhealthy")
_ACTIONS = ("stall_seconds", "fail_batch", "refuse_seconds")
ACCEPTED = ", ".join((*_PLAN_FIELDS, *_ACTIONS))
"""Names that an order may hold, for messages."""


def read_order(body: Any) -> FaultOrder:
    """Read a parsed order; `{}` clears the plan, and an order of actions alone leaves it as it is.

    `stall_seconds` may be the word `forever`. `fail_batch` is a message, or true for a usual one.

    Raises:
        ValueError: not an object, an unknown name or a value out of range; the text says what is accepted.
    """
    if not isinstance(body, dict):
        raise ValueError(f"an object is needed, with any of: {ACCEPTED}")  # noqa: TRY004 - a value of JSON, not a type
    unknown = [name for name in body if name not in _PLAN_FIELDS and name not in _ACTIONS]
    if unknown:
        raise ValueError(f"unknown fault {unknown[0]!r}; accepted are: {ACCEPTED}")
    planned = {name: value for name, value in body.items() if name in _PLAN_FIELDS}
    plan = _plan(planned) if planned or not body else None
    return FaultOrder(plan, _stall(body), _failure(body), _seconds(body, "refuse_seconds"))


def parse_fault(text: str) -> tuple[str, Any]:
    """Read `NAME=VALUE` of the command line; only faults of a plan can be on from the start.

    Raises:
        ValueError: as `read_order`.
    """
    name, sign, value = text.partition("=")
    if name not in _PLAN_FIELDS or (not sign and name not in _SWITCHES):
        raise ValueError(f"{text!r}: must be NAME=VALUE with one of: {', '.join(_PLAN_FIELDS)}")
    if name in _SWITCHES:
        if value not in {"", "true", "false"}:
            raise ValueError(f"{text!r}: {name} is true or false")
        return name, value != "false"
    try:
        return name, float(value) if name.endswith("_seconds") else int(value)
    except ValueError:
        raise ValueError(f"{text!r}: {value!r} is not a number") from None


def build_plan(pairs: dict[str, Any]) -> FaultPlan:
    """Return the plan of these faults.

    Raises:
        ValueError: as `read_order`.
    """
    return _plan(pairs)


class Faults:
    """The plan in force, used up as requests come."""

    def __init__(self, plan: FaultPlan) -> None:
        """Start with a plan."""
        self.plan = plan

    def meet(self) -> FaultPlan:
        """Return what one more generating request meets, and count it."""
        plan = self.plan
        if plan.times is None:
            return plan
        if plan.times == 0:
            return FaultPlan(idle_close_seconds=plan.idle_close_seconds, unhealthy=plan.unhealthy)
        self.plan = plan.model_copy(update={"times": plan.times - 1})
        return plan


def _plan(values: dict[str, Any]) -> FaultPlan:
    try:
        return FaultPlan.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{name}: {first['msg']}, not {first['input']!r}") from None


def _stall(body: dict[str, Any]) -> float | None:
    return inf if body.get("stall_seconds") == "forever" else _seconds(body, "stall_seconds")


def _seconds(body: dict[str, Any], name: str) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 86_400:
        raise ValueError(f"{name}: a number of seconds from 0 to 86400 is needed, not {value!r}")
    return float(value)


def _failure(body: dict[str, Any]) -> str | None:
    match body.get("fail_batch"):
        case None | False:
            return None
        case True:
            return "CUDA out of memory"
        case str(message):
            return message
        case other:
            raise ValueError(f"fail_batch: true or a message is needed, not {other!r}")
