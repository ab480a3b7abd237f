"""The headers by which a client says what it wishes, in OpenAPI; docs/contract.md explains them."""

from collections.abc import Mapping
from typing import Any, Final

from llmshed.admission.request import Intent, PriorityClass

_SAID: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "x-request-id": ("the client's name for this request", {"type": "string", "maxLength": 128}),
    "x-llmshed-intent": ("what the request is for", {"enum": list(Intent)}),
    "x-llmshed-class": ("its priority class", {"enum": list(PriorityClass)}),
    "x-llmshed-session": ("the conversation that it belongs to", {"type": "string", "minLength": 1, "maxLength": 512}),
    "x-llmshed-deadline-ms": (
        "milliseconds from now after which an answer is useless",
        {"type": "integer", "minimum": 1, "maximum": 999_999_999_999},
    ),
    "x-llmshed-degrade": ("`no`: rather be refused than be answered otherwise than asked", {"enum": ["no"]}),
    "idempotency-key": ("the client's name for an operation", {"type": "string", "minLength": 1, "maxLength": 255}),
    "x-stainless-retry-count": ("tries before this one", {"type": "integer", "minimum": 0}),
}


def wish_parameters() -> dict[str, dict[str, Any]]:
    """Return the parameters by the names under which operations refer to them; none gives more than a key allows."""
    return {
        name: {"name": name, "in": "header", "description": description, "schema": schema}
        for name, (description, schema) in _SAID.items()
    }
