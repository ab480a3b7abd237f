"""Output ceilings for traces that hold none: the three rules by which goodput is told, and what the trace says.

Clients name a ceiling before anybody knows the length, so it is kept apart from the true length, which only the engine
sees. A request whose true length exceeds its ceiling ends at the ceiling.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import assert_never

from llmshed.workload.request import TracedRequest


class CeilingRule(StrEnum):
    """Where the ceiling that a request asks for comes from."""

    ASKED = "asked"
    """What the trace holds, often nothing."""
    POW2 = "pow2"
    """The next power of two above the true length: a client that knows its answers well."""
    FLAT1024 = "flat1024"
    FLAT4096 = "flat4096"
    """One number for all: what SDK examples and frameworks put there."""


def ceiling_tokens(rule: CeilingRule, request: TracedRequest) -> int | None:
    """Return the ceiling that a request asks for under a rule; None when it names none."""
    match rule:
        case CeilingRule.ASKED:
            return request.asked_output_tokens
        case CeilingRule.POW2:
            return 1 << request.true_output_tokens.bit_length()
        case CeilingRule.FLAT1024:
            return 1024
        case CeilingRule.FLAT4096:
            return 4096
        case _:
            assert_never(rule)


def with_ceilings(requests: Iterable[TracedRequest], rule: CeilingRule) -> Iterator[TracedRequest]:
    """Yield the requests with the ceilings of a rule; `asked` leaves them as they are."""
    if rule is CeilingRule.ASKED:
        return iter(requests)
    return (replace(request, asked_output_tokens=ceiling_tokens(rule, request)) for request in requests)
