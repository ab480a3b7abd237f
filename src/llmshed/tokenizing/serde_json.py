"""JSON text byte for byte as TGI's serde_json 1.0 writes it, where that text becomes part of a prompt.

orjson agrees on all but floats with an exponent (it writes `1e+16`, serde_json `1e16`), so those are written here.
"""

from decimal import Decimal
from typing import Any

import orjson

from llmshed.errors import PromptError

# Decimal exponents between which serde_json (crate ryu 1.0, pretty format) writes no exponent.
_LEAST_POINT, _MOST_POINT = -5, 16


def dumps(value: Any) -> str:
    """Return compact JSON, key order kept, of a value that came from JSON; integers reach 64 bits.

    Raises:
        PromptError: the value holds something that JSON has no form for, as half of a surrogate pair.
    """
    match value:
        case dict():
            return "{" + ",".join(f"{dumps(key)}:{dumps(entry)}" for key, entry in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(dumps(entry) for entry in value) + "]"
        case float():
            return _float(value)
        case _:
            try:
                return orjson.dumps(value).decode()
            except orjson.JSONEncodeError as error:
                raise PromptError(f"tools and tool calls: JSON has no form for a value of them: {error}") from None


def _float(value: float) -> str:
    """Write the shortest digits that read back as `value`, which are those of `repr`, in ryu's layout."""
    number = Decimal(repr(value))
    if not number.is_finite():
        return "null"
    sign, digit_tuple, exponent = number.normalize().as_tuple()
    digits = "".join(map(str, digit_tuple))
    minus = "-" if sign else ""
    if digits == "0":
        return f"{minus}0.0"
    point = len(digits) + int(exponent)
    if len(digits) <= point <= _MOST_POINT:
        return f"{minus}{digits.ljust(point, '0')}.0"
    if 0 < point <= _MOST_POINT:
        return f"{minus}{digits[:point]}.{digits[point:]}"
    if _LEAST_POINT < point <= 0:
        return f"{minus}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{minus}{digits[0]}{fraction}e{point - 1}"
