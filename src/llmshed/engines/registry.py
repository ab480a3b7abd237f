"""Engines by the name that the configuration and the commands give them."""

from collections.abc import Callable, Mapping
from typing import Final

from llmshed.engines.base import Engine, ReadableEngine
from llmshed.engines.llamacpp.engine import LlamaCppEngine
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.engines.tgi.versions import AUTO
from llmshed.engines.vllm.engine import VllmEngine
from llmshed.errors import ConfigError

_SERVED: Final = {TgiEngine.name: TgiEngine}
_READ_ONLY: Final[Mapping[str, Callable[[], ReadableEngine]]] = {
    VllmEngine.name: VllmEngine,
    LlamaCppEngine.name: LlamaCppEngine,
}
READABLE_ENGINES: Final = (*_SERVED, *_READ_ONLY)
"""Names of the engines that `calibrate` and `replay` can measure."""


def engine(name: str, version: str = AUTO, *, allow_truncate: bool = False) -> Engine:
    """Return the adapter of an engine that the gateway can serve with.

    Args:
        name: the engine's name in `pools.engine`.
        version: its version; `auto` stands for the newest known until the engine tells its own.
        allow_truncate: let requests have their prompt cut by the engine.

    Raises:
        ConfigError: no such engine, or one that is measured only, or a version that is none.
    """
    make = _SERVED.get(name)
    if make is None:
        known = "can be measured, but not served" if name in _READ_ONLY else "is not known"
        raise ConfigError((f'engine: "{name}" {known}; accepted: {", ".join(_SERVED)}',))
    return make(version, allow_truncate=allow_truncate)


def readable_engine(name: str) -> ReadableEngine:
    """Return the adapter of an engine whose replicas can be measured.

    Raises:
        ConfigError: no such engine.
    """
    make = _READ_ONLY.get(name)
    if make is not None:
        return make()
    if name not in _SERVED:
        raise ConfigError((f'engine: "{name}" is not known; accepted: {", ".join(READABLE_ENGINES)}',))
    return engine(name)
