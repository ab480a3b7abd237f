"""A recorded schedule read back, and gone through again in virtual time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from math import inf
from typing import Any, TypeVar, assert_never

import orjson
from pydantic import TypeAdapter, ValidationError

from llmshed.errors import TraceError
from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import Result
from llmshed.simulation.schedule import (
    CALLS,
    ENGINE,
    RESULTS,
    SCHEMA,
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
from llmshed.simulation.scheduler import Scheduler

K = TypeVar("K", bound=Call | Result | ReplicaParameters)
_ADAPTERS: dict[object, TypeAdapter[Any]] = {
    kind: TypeAdapter(kind) for kind in (ReplicaParameters, *CALLS.values(), *RESULTS.values())
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """One recording, read whole; `calls` and `results` each in their order."""

    parameters: ReplicaParameters
    calls: tuple[Called, ...]
    results: tuple[Result, ...]


def read_schedule(lines: Iterable[bytes | str]) -> Schedule:
    """Read a recording.

    Raises:
        TraceError: it is empty, its schema is another one, or a line is none of its lines; the error names the line.
    """
    parameters: ReplicaParameters | None = None
    calls: list[Called] = []
    results: list[Result] = []
    lives = _Lives()
    for number, text in enumerate(lines, 1):
        line = _object(text, number)
        if parameters is None:
            parameters = _parameters(line)
        elif "call" in line:
            called = _called(line, number)
            lives.check(called, number)
            calls.append(called)
        else:
            results.append(_result(line, number))
    if parameters is None:
        raise TraceError(f"the schedule is empty; a first line with the schema {SCHEMA} is needed")
    return Schedule(parameters, tuple(calls), tuple(results))


class _Lives:
    """Holds calls to the order that a model relies on."""

    def __init__(self) -> None:
        self._last_at = -inf
        self._closed = False
        self._asked: set[int] = set()
        self._validating: set[int] = set()

    def check(self, called: Called, number: int) -> None:
        """Refuse a call that cannot follow those before it.

        Raises:
            TraceError: time goes back, the recording was closed, a key comes twice, or there is no permit.
        """
        if called.at < self._last_at:
            raise TraceError(f"at {called.at} is before the call above it, at {self._last_at}", number)
        if self._closed:
            raise TraceError("a call follows the line that closes the schedule", number)
        self._last_at = called.at
        problem = self._follow(called.call)
        if problem is not None:
            raise TraceError(problem, number)

    def _follow(self, call: Call) -> str | None:
        match call:
            case TakePermit(key) if key in self._asked:
                return f"sequence {key} asks for a permit twice"
            case TakePermit(key, granted):
                self._asked.add(key)
                if granted:
                    self._validating.add(key)
            case Submit(sequence) if sequence.key not in self._validating:
                return f"sequence {sequence.key} is submitted without a permit"
            case Submit(sequence):
                self._validating.remove(sequence.key)
            case Leave(key):
                self._validating.discard(key)
            case Close():
                self._closed = True
            case FailStep() | Stall() | Resume():
                pass
            case _:
                assert_never(call)
        return None


def replay(schedule: Schedule) -> Iterator[Result]:
    """Yield what comes of the same calls at the same instants on a fresh model, up to the last call.

    Neighbouring `StepsEnded` of decodes may be one where the recording has several, since the replay does not look in
    between.

    Raises:
        TraceError: a call has another outcome than was recorded, so that the schedule comes of another model.
    """
    model = Scheduler(schedule.parameters)
    for called in schedule.calls:
        yield from model.advance(called.at)
        _repeat(model, called)


def _repeat(model: ReplicaModel, called: Called) -> None:
    match called.call:
        case TakePermit(key, granted):
            _same("permit", key, model.take_permit(key), recorded=granted)
        case Submit(sequence, accepted):
            plan = model.submit(sequence, called.at)
            _same("submission", sequence.key, isinstance(plan, OutputPlan), recorded=accepted)
        case Leave(key):
            model.leave(key)
        case FailStep(message):
            model.fail_step(message)
        case Stall(seconds):
            model.stall(called.at, inf if seconds is None else seconds)
        case Resume():
            model.resume(called.at)
        case Close():
            pass
        case _:
            assert_never(called.call)


def _same(what: str, key: int, outcome: bool, *, recorded: bool) -> None:  # noqa: FBT001 - what the model answered
    if outcome is not recorded:
        then, now = ("granted", "refused") if recorded else ("refused", "granted")
        raise TraceError(f"the {what} of sequence {key} was {then} when recorded, and is {now} by this model")


def _object(text: bytes | str, number: int) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        cut = text[-1:] not in {b"\n", "\n"}
        hint = "; if it is the last one, the recording was cut: leave it out" if cut else ""
        raise TraceError(f"not JSON: {error}{hint}", number) from None
    if not isinstance(value, dict):
        raise TraceError("not a JSON object", number)
    return value


def _parameters(line: Mapping[str, Any]) -> ReplicaParameters:
    if line.get("schema") != SCHEMA:
        raise TraceError(f"schema is {line.get('schema')!r}; accepted is {SCHEMA!r}", 1)
    if line.get("engine") != ENGINE:
        raise TraceError(f"engine is {line.get('engine')!r}; accepted is {ENGINE!r}", 1)
    return _build(ReplicaParameters, line.get("parameters"), 1)


def _called(line: dict[str, Any], number: int) -> Called:
    name, at = line.pop("call"), line.pop("at", None)
    if type(at) not in {int, float}:
        raise TraceError(f"at is {at!r}; a number of seconds is needed", number)
    return Called(float(at), _build(_kind(CALLS, name, "call", number), line, number))


def _result(line: dict[str, Any], number: int) -> Result:
    return _build(_kind(RESULTS, line.pop("result", None), "result", number), line, number)


def _kind(kinds: Mapping[str, type[K]], name: object, what: str, number: int) -> type[K]:
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise TraceError(f"{what} is {name!r}; accepted are {', '.join(kinds)}", number)
    return kind


def _build(kind: type[K], value: object, number: int) -> K:
    if isinstance(value, dict) and (unknown := value.keys() - {field.name for field in fields(kind) if field.init}):
        raise TraceError(f"{min(unknown)} is not known here", number)
    try:
        built: K = _ADAPTERS[kind].validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise TraceError(f"{place}: {first['msg']}" if place else first["msg"], number) from None
    return built
