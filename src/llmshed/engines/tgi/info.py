"""Text Generation Inference's `/info`, in the forms of its versions."""

from collections.abc import Mapping
from typing import Any, Final

from llmshed.engines.base import EngineInfo
from llmshed.engines.fields import shown
from llmshed.engines.tgi.versions import release_of
from llmshed.errors import EngineError

_INPUT_NAMES: Final = ("max_input_tokens", "max_input_length")
"""The limit on input was renamed in 2.1.0."""
MAX_NAME_CHARACTERS: Final = 256


def read_tgi_info(info: Mapping[str, Any]) -> EngineInfo:
    """Read `/info` of versions 1.4 to 3.3.

    `max_batch_total_tokens` is told up to 2.2.0 only, `max_client_batch_size` from 2.0.2 on.

    Raises:
        EngineError: a field that every version tells is missing or of another kind; the text names it.
    """
    if not isinstance(info, Mapping):
        raise EngineError("/info: the answer is not a JSON object, so this is not a TGI server")
    model_id = _text(info, "model_id")
    version = _text(info, "version")
    if release_of(version) is None:
        raise EngineError(f"/info: `version` should be like 3.3.5, but it is {shown(version)}. Is this a TGI server?")
    input_name = next((name for name in _INPUT_NAMES if name in info), _INPUT_NAMES[0])
    return EngineInfo(
        model_id=model_id,
        version=version,
        max_concurrent_requests=_limit(info, "max_concurrent_requests"),
        max_input_tokens=_limit(info, input_name),
        max_total_tokens=_limit(info, "max_total_tokens"),
        max_batch_total_tokens=_optional(info, "max_batch_total_tokens"),
        max_best_of=_optional(info, "max_best_of"),
        max_client_batch_size=_optional(info, "max_client_batch_size"),
    )


def _text(info: Mapping[str, Any], name: str) -> str:
    """Return a name that fits into a header, a label and a line of the log."""
    value = info.get(name)
    if not isinstance(value, str) or not value:
        raise _unlike(info, name, "a string")
    if len(value) > MAX_NAME_CHARACTERS or not value.isascii() or not value.isprintable():
        expected = f"1 to {MAX_NAME_CHARACTERS} printable ASCII characters"
        raise EngineError(f"/info: `{name}` should be {expected}, but it is {shown(value)}.")
    return value


def _limit(info: Mapping[str, Any], name: str) -> int:
    value = info.get(name)
    if type(value) is not int or value < 1:
        raise _unlike(info, name, "a whole number above 0")
    return value


def _optional(info: Mapping[str, Any], name: str) -> int | None:
    return None if info.get(name) is None else _limit(info, name)


def _unlike(info: Mapping[str, Any], name: str, expected: str) -> EngineError:
    """Say what came instead, so that another server on the address is recognised."""
    came = f"it is {_kind(info[name])}" if name in info else f"it is missing; told: {_names(info)}"
    return EngineError(f"/info: `{name}` should be {expected}, but {came}. Is a TGI server at this address?")


def _names(info: Mapping[str, Any]) -> str:
    names = [shown(str(name)) for name in list(info)[:12]]
    return ", ".join(names) or "nothing"


def _kind(value: object) -> str:
    return f"{value}" if type(value) in {int, float} else f"a {type(value).__name__}"
