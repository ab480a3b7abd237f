"""By what a repeat of a request is known: what its client says of its tries, and the name of the request."""

import re

from multidict import CIMultiDictProxy

from llmshed.gateway.door.wishes import Wishes
from llmshed.gateway.hashing import Hasher

_MOST_RETRIES = 1000
_MOST_RETRY_DIGITS = 4
_MOST_KEY_CHARACTERS = 255
_QUOTED_KEY = re.compile(r'"((?:[!#-\[\]-~]|\\["\\])+)"')
_BARE_KEY = re.compile(r"[!#-~][!-~]*")
_ESCAPED = re.compile(r"\\(.)")


def declared_repeats(headers: CIMultiDictProxy[str]) -> int | None:
    """Return how many tries an SDK says it made before this one, 0 to 1,000; None where it says nothing readable.

    It can only lose by saying so: a repeat stands behind the first arrivals of its tenant. Some outer loops of retries
    begin at 0 again.
    """
    told = headers.getall("x-stainless-retry-count", None)
    if told is None:
        return None
    text = told[0] if len(set(told)) == 1 else ""
    valid = text.isascii() and text.isdigit() and len(text) <= _MOST_RETRY_DIGITS
    return min(int(text), _MOST_RETRIES) if valid else None


def idempotency_key(headers: CIMultiDictProxy[str]) -> str | None:
    """Return the client's own name of the operation, unquoted: 1 to 255 visible ASCII characters; None for any other.

    The header's draft quotes it, as a structured field, and most of its users do not.
    """
    told = headers.getall("idempotency-key", None)
    if told is None:
        return None
    text = told[0].strip() if len(set(told)) == 1 else ""
    if (quoted := _QUOTED_KEY.fullmatch(text)) is not None:
        text = _ESCAPED.sub(r"\1", quoted[1])
    elif _BARE_KEY.fullmatch(text) is None:
        return None
    return text if len(text) <= _MOST_KEY_CHARACTERS else None


def request_name(
    hasher: Hasher, tenant: str, route: str, headers: CIMultiDictProxy[str], fingerprint: str, wishes: Wishes
) -> str:
    """Return the name by which a repeat of a request is known to admission.

    That is the fingerprint of its body, or its client's idempotency key, and what it wishes to be treated as: one that
    asks for another intent or class is another request, which the wait of the first says nothing about. Deadlines are
    left out, since a client that gives a total time has less of it with each try.
    """
    key = idempotency_key(headers)
    body = fingerprint if key is None else hasher.operation(tenant, route, key)
    return ".".join(filter(None, (body, wishes.intent, wishes.priority_class)))
