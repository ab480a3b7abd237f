"""The stages of `llmshed whatif`: each configuration with its profiles, before simulated replicas."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from llmshed.config.addresses import SIMULATED
from llmshed.config.loading import load_config
from llmshed.gateway.config_file import read_config
from llmshed.gateway.ladders.files import read_ladders
from llmshed.gateway.profile_file import read_profile, simulated_profile
from llmshed.rendering.plain import readable
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.whatif.staging import setting_from, spread_copies

from ._replica import read_replica

if TYPE_CHECKING:
    from llmshed.config.pools import PoolSettings
    from llmshed.config.settings import Config
    from llmshed.ladder.model import Ladder
    from llmshed.profile import Profile
    from llmshed.simulation.building import Parameters
    from llmshed.whatif.setting import Setting

NO_LADDER = "off"
"""What leaves all ladders out."""
DEFAULTS = "(defaults)"
"""What the configuration is called when none is named."""
_DEFAULT_CONFIG = """
[[pools]]
replicas = [{ name = "simulated", url = "simulated:" }]
"""


@dataclass(frozen=True, slots=True)
class Replicas:
    """What stands behind the gate.

    Args:
        name: what a replica is called; None for the simulated one that ships with llmshed.
        parameters: what every replica is.
        count: how many there are.
    """

    name: str | None
    parameters: "Parameters"
    count: int


@dataclass(frozen=True, slots=True)
class GatewayTimes:
    """What the gateway's own work takes, in seconds; None for the usual.

    Args:
        request_seconds: for each try of a request.
        token_seconds: for each output token that it relays.
    """

    request_seconds: float | None = None
    token_seconds: float | None = None

    def put_into(self, setting: "Setting") -> "Setting":
        """Return the setting with the times that are given."""
        if self.request_seconds is not None:
            setting = replace(setting, gateway_seconds_per_request=self.request_seconds)
        if self.token_seconds is not None:
            setting = replace(setting, gateway_seconds_per_output_token=self.token_seconds)
        return setting


@dataclass(frozen=True, slots=True)
class Stage:
    """One configuration, ready for as many runs as are asked for.

    Args:
        name: what the configuration is called.
        config: its settings.
        profiles: profile of each pool that has one, by the pool's name.
        copies: replicas of each pool.
        parameters: what every replica is.
        gateway: what the gateway's own work takes.
        ladders: ladder of each pool that has one, by the pool's name.
    """

    name: str
    config: "Config"
    profiles: "dict[str, Profile]"
    copies: dict[str, int]
    parameters: "Parameters"
    gateway: GatewayTimes
    ladders: "dict[str, Ladder]"

    def setting(self) -> "Setting":
        """Return the setting of one run; a run uses it up."""
        setting = setting_from(self.config, self.profiles, self.parameters, self.copies, self.ladders)
        return self.gateway.put_into(setting)


def named_replicas(named: str | None, count: int) -> Replicas:
    """Return the replicas of a file or a shipped name, or the simulated replica of a first run.

    Raises:
        MissingInputError: there is neither such a name nor such a file.
        ReplicaFileError: the file holds mistakes.
    """
    if named is None:
        return Replicas(None, ReplicaParameters(), count)
    described = read_replica(named)
    return Replicas(described.name, described.parameters, count)


def read_stages(
    config: Path | None, against: Path | None, replicas: Replicas, gateway: GatewayTimes, ladder: str | None = None
) -> tuple[Stage, ...]:
    """Return the stage of each configuration, the base first.

    Args:
        config: the configuration; None for the defaults.
        against: another one to compare with.
        replicas: what stands behind the gate.
        gateway: what the gateway's own work takes.
        ladder: the ladder of every pool, `off` for none; None for what the configurations name.

    Raises:
        ConfigError: a configuration, or a ladder, cannot be read or holds mistakes.
        ProfileError: a profile that one names cannot be read, or breaks its schema.
        typer.BadParameter: both are the same file, or there are fewer replicas than pools.
    """
    if against is not None and config is not None and _same(config, against):
        raise typer.BadParameter(f"--against {against}: it is the file of --config; two different ones are compared")
    names = _names(config, against)
    loaded = [_read(path, replicas) for path in ((config,) if against is None else (config, against))]
    loaded = [one if ladder is None else _on_ladder(one, ladder) for one in loaded]
    return tuple(
        Stage(
            name,
            one,
            _profiles(one, replicas),
            _copies(one, name, replicas),
            replicas.parameters,
            gateway,
            read_ladders(one),
        )
        for name, one in zip(names, loaded, strict=True)
    )


def _on_ladder(config: "Config", ladder: str) -> "Config":
    """Put every pool on a ladder, or off any."""
    place = None if ladder == NO_LADDER else ladder
    pools = tuple(pool.model_copy(update={"ladder": place}) for pool in config.pools)
    return config.model_copy(update={"pools": pools})


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def _names(config: Path | None, against: Path | None) -> tuple[str, ...]:
    """Return what the configurations are called: their files, without folders where that tells them apart."""
    paths = [path for path in (config, against) if path is not None]
    short = [readable(path.name) for path in paths]
    told = iter(short if len(set(short)) == len(short) else [readable(str(path)) for path in paths])
    base = DEFAULTS if config is None else next(told)
    return (base,) if against is None else (base, next(told))


def _read(path: Path | None, replicas: Replicas) -> "Config":
    """Return the settings of a file; without one, defaults whose gross ceiling is what the replica's KV cache holds."""
    if path is not None:
        return read_config(path, os.environ, {}).config
    config = load_config(_DEFAULT_CONFIG, DEFAULTS, os.environ, {}).config
    if replicas.name is None:
        return config
    held = tuple(
        pool
        if pool.gross_ceiling_tokens
        else pool.model_copy(update={"gross_ceiling_tokens": replicas.parameters.kv_tokens})
        for pool in config.pools
    )
    return config.model_copy(update={"pools": held})


def _profiles(config: "Config", replicas: Replicas) -> "dict[str, Profile]":
    found = ((pool.name, _profile(pool, replicas)) for pool in config.pools)
    return {name: profile for name, profile in found if profile is not None}


def _profile(pool: "PoolSettings", replicas: Replicas) -> "Profile | None":
    """Return the profile that a pool names; the package's own is true of the package's own replica only."""
    if pool.profile is not None:
        return read_profile(Path(pool.profile))
    own = replicas.name is None and all(replica.url == SIMULATED for replica in pool.replicas)
    return simulated_profile() if own else None


def _copies(config: "Config", name: str, replicas: Replicas) -> dict[str, int]:
    try:
        return spread_copies(config, replicas.count)
    except ValueError as error:
        raise typer.BadParameter(f"COPIES: {error} ({name})") from None
