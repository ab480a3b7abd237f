"""`/admin/classify`: the verdict that a request would get now, from stated sizes or from a body that is counted."""

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, TypeVar

from llmshed.admission.policy import AdmissionPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.report import verdict_report
from llmshed.admission.request import Intent, PriorityClass, Request
from llmshed.engines.base import BodyError, Route
from llmshed.gateway.counting.call_count import count_call
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.door.reading import pool_of
from llmshed.gateway.door.wishes import read_word

_QUESTIONS = frozenset({"input_tokens", "route", "body", "max_output", "intent", "class", "tenant", "model"})
_MOST_TOKENS = 2**31 - 1
_KEY = 0
"""Key of requests that are only asked about: the driver's own keys begin at 1."""
_Word = TypeVar("_Word", bound=StrEnum)


async def classified(gateway: Gateway, question: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a question: `input_tokens`, or `route` and `body`; beside them `max_output`, `intent`, `class` and so on.

    Raises:
        BodyError: the question has an unknown field, or a value that cannot be meant.
        LlmshedError: the body cannot be read or counted, as it would be on the data listener.
    """
    unknown = sorted(set(question) - _QUESTIONS)
    if unknown:
        raise _wrong(unknown[0][:64], f"is not known; accepted: {', '.join(sorted(_QUESTIONS))}")
    if ("input_tokens" in question) == ("body" in question):
        raise _wrong("input_tokens", "give either it, or `route` and `body`")
    asked = await (_counted(gateway, question) if "body" in question else _stated(gateway, question))
    asked = replace(asked, arrived_at=gateway.clock.now(), tenant=_tenant(question, gateway.policy))
    changes: dict[str, Any] = {
        "asked_output_tokens": _tokens(question, "max_output", 1),
        "asked_intent": _word(question, "intent", Intent),
        "asked_class": _word(question, "class", PriorityClass),
    }
    asked = replace(asked, **{name: value for name, value in changes.items() if value is not None})
    return verdict_report(gateway.driver.assess(asked), asked)


async def _stated(gateway: Gateway, question: Mapping[str, Any]) -> Request:
    tokens = _tokens(question, "input_tokens", 0)
    if tokens is None:
        raise _wrong("input_tokens", "must be a whole number")
    pool = pool_of(gateway.policy.pools, {"model": question.get("model")}, gateway.fleet.is_met)
    return Request(_KEY, "", pool.model, (tokens,))


async def _counted(gateway: Gateway, question: Mapping[str, Any]) -> Request:
    body, routes = question["body"], [route.value for route in Route if route.generates]
    if not isinstance(body, dict):
        raise _wrong("body", "must be the JSON object that the route takes")
    if question.get("route") not in routes:
        raise _wrong("route", f"must be one of {', '.join(routes)}")
    model = question.get("model", body.get("model"))
    pool = pool_of(gateway.policy.pools, {"model": model}, gateway.fleet.is_met)
    call = gateway.fleet.engine(pool.name).read_call(Route(question["route"]), body)
    counted = await count_call(gateway, pool, call)
    return Request(
        _KEY,
        "",
        pool.model,
        counted.prompt_tokens,
        copies=call.copies,
        asked_output_tokens=call.asked_output_tokens,
        asked_intent=_word({"intent": call.declared_intent}, "intent", Intent),
        streamed=call.streamed,
    )


def _tenant(question: Mapping[str, Any], policy: AdmissionPolicy) -> str:
    """Return the tenant that is asked for; the only one there is, when none is named."""
    names = list(policy.tenants)
    named = question.get("tenant", names[0] if len(names) == 1 else None)
    if named not in names:
        raise _wrong("tenant", f"must be one of {', '.join(names)}")
    return str(named)


def _tokens(question: Mapping[str, Any], name: str, least: int) -> int | None:
    value = question.get(name)
    if value is None or (type(value) is int and least <= value <= _MOST_TOKENS):
        return value
    raise _wrong(name, f"must be a whole number from {least} to {_MOST_TOKENS}")


def _word(question: Mapping[str, Any], name: str, words: type[_Word]) -> _Word | None:
    value = question.get(name)
    return None if value is None else read_word(name, value, words)


def _wrong(name: str, sentence: str) -> BodyError:
    return BodyError(Reason.MALFORMED, f"{name}: {sentence}", name)
