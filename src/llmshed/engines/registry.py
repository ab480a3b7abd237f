"""Engines by the name that the configuration gives them."""

from typing import Final

from llmshed.engines.base import Engine
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.engines.tgi.versions import AUTO
from llmshed.errors import ConfigError

_ENGINES: Final = {"tgi": TgiEngine}


def engine(name: str, version: str = AUTO, *, allow_truncate: bool = False) -> Engine:
    """Return the adapter of an engine.

    Args:
        name: the engine's name in `pools.engine`.
        version: its version; `auto` stands for the newest known until the engine tells its own.
        allow_truncate: let requests have their prompt cut by the engine.

    Raises:
        ConfigError: no such engine, or a version that is none.
    """
    make = _ENGINES.get(name)
    if make is None:
        raise ConfigError((f'engine: "{name}" is not known; accepted: {", ".join(sorted(_ENGINES))}',))
    return make(version, allow_truncate=allow_truncate)
