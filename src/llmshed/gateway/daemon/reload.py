"""Taking another configuration while requests run: all of it is read and validated, then it is swapped at once."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from llmshed.config.contradictions import counting_contradictions, listener_contradictions
from llmshed.config.paths import spelled
from llmshed.config.settings import Config
from llmshed.errors import ConfigError, LlmshedError
from llmshed.gateway.daemon.snapshot import Snapshot
from llmshed.gateway.door.auth import AdminAccess, KeyRing
from llmshed.ladder.model import Ladder

_log = logging.getLogger(__name__)

FIXED = (
    "server.listen",
    "server.admin_listen",
    "server.max_headers",
    "server.max_header_bytes",
    "server.keepalive_seconds",
    "server.write_stall_seconds",
    "server.event_loop",
    "log.decisions",
    "log.hash_key_file",
    "counting",
    "upstream",
    "ladder",
)
"""Settings that a running gateway keeps: sockets, threads and files that were opened by them."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """A configuration with the secrets and ladders that it names, read and valid.

    Args:
        config: the settings.
        keys: whose keys are known.
        admin: who may use the admin listener.
        ladders: the ladders, by the names of pools that have one.
    """

    config: Config
    keys: KeyRing
    admin: AdminAccess
    ladders: Mapping[str, Ladder] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """What came of a reload.

    Args:
        in_force: whether the configuration that was read is in force now.
        config_version: version of the one that is in force.
        problems: why it is not.
        kept: settings that differ in the file and keep their old value until a restart.
    """

    in_force: bool
    config_version: str
    problems: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def with_fixed(old: Config, new: Config) -> tuple[Config, tuple[str, ...]]:
    """Return the new configuration with the old one's fixed settings, and the names of those that differed.

    Raises:
        ConfigError: the two do not go together, as an address for strangers that is kept and keys that are taken away.
    """
    kept: list[str] = []
    for path in FIXED:
        table, _, setting = path.partition(".")
        if not setting:
            if getattr(old, table) != getattr(new, table):
                kept.append(path)
                new = new.model_copy(update={table: getattr(old, table)})
            continue
        before, after = getattr(old, table), getattr(new, table)
        if getattr(before, setting) != getattr(after, setting):
            kept.append(path)
            changed = after.model_copy(update={setting: getattr(before, setting)})
            new = new.model_copy(update={table: changed})
    clashes = chain(listener_contradictions(new.server, new.tenants), counting_contradictions(new.counting, new.server))
    problems = tuple(f"{spelled(clash.paths[0])}: kept until a restart: {clash.message}" for clash in clashes)
    if problems:
        raise ConfigError(problems)
    return new, tuple(kept)


class Reloader:
    """Reads and takes configurations, one at a time.

    Args:
        read: reads and validates the configuration and every file that it names; blocks.
        take: puts it in force at once and returns its version, or raises and changes nothing.
        current: returns what is in force.
        refused: is told that a configuration was refused.
    """

    def __init__(
        self,
        read: Callable[[], Inputs],
        take: Callable[[Inputs], str],
        current: Callable[[], Snapshot],
        refused: Callable[[], None],
    ) -> None:
        """Keep the collaborators."""
        self._read = read
        self._take = take
        self._current = current
        self._refused = refused
        self._one_at_a_time = asyncio.Lock()

    async def reload(self) -> ReloadResult:
        """Read the configuration again; an invalid one leaves everything as it is, and says so."""
        async with self._one_at_a_time:
            kept_version = self._current().version
            try:
                inputs = await asyncio.to_thread(self._read)
                config, kept = with_fixed(self._current().config, inputs.config)
                version = self._take(replace(inputs, config=config))
            except LlmshedError as error:
                problems = tuple(str(error).splitlines())
                self._refused()
                _log.error("config_refused", extra={"problems": problems, "config_version": kept_version})
                return ReloadResult(in_force=False, config_version=kept_version, problems=problems)
        for setting in kept:
            _log.warning("setting_needs_restart", extra={"setting": setting})
        _log.info("config_reloaded", extra={"config_version": version})
        return ReloadResult(in_force=True, config_version=version, kept=kept)
