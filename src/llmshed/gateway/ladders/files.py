"""Where ladders are read from disk, and held against the configuration that names them."""

from collections.abc import Iterator, Mapping
from datetime import date
from importlib import resources
from pathlib import Path

from llmshed.config.ladders import SHIPPED_LADDERS
from llmshed.config.pools import PoolSettings
from llmshed.config.settings import Config
from llmshed.engines import registry
from llmshed.errors import ConfigError, LadderError
from llmshed.ladder.model import Ladder, Rung, RungAction
from llmshed.ladder.parsing import parse_ladder
from llmshed.ladder.soundness import circles, problems, warnings

_MOST_BYTES = 1_048_576


def read_ladder(place: str) -> Ladder:
    """Read and validate a ladder; its file of evaluations becomes an absolute path.

    Args:
        place: the name of a shipped ladder, or the path of a file.

    Raises:
        LadderError: it cannot be read, or holds mistakes; one line for each.
    """
    if place in SHIPPED_LADDERS:
        own = resources.files("llmshed.profiles") / "ladders" / f"{place}.toml"
        return parse_ladder(own.read_text(encoding="utf-8"), place)
    path = Path(place)
    ladder = parse_ladder(_text(path), str(path))
    if ladder.evaluations is None:
        return ladder
    return ladder.model_copy(update={"evaluations": str(path.absolute().parent / ladder.evaluations)})


def read_ladders(config: Config) -> dict[str, Ladder]:
    """Return the ladders of a configuration, by the names of the pools that have one.

    Raises:
        ConfigError: a ladder cannot be read, or does not suit the configuration; every mistake is told.
    """
    ladders: dict[str, Ladder] = {}
    found: list[str] = []
    for index, pool in enumerate(config.pools):
        if pool.ladder is None:
            continue
        try:
            ladders[pool.name] = read_ladder(pool.ladder)
        except LadderError as error:
            found += [f"pools[{index}].ladder: {line}" for line in str(error).splitlines()]
        else:
            found += [
                f"pools[{index}].ladder: {pool.ladder}: {line}" for line in unsuited(ladders[pool.name], pool, config)
            ]
    for circle in circles(ladders):
        way = " to ".join(f"`{name}`" for name in (*circle, circle[0]))
        found.append(f"pools: rungs send requests in a circle: {way}; no way may lead back")
    if found:
        raise ConfigError(tuple(found))
    return ladders


def unsuited(ladder: Ladder, pool: PoolSettings, config: Config) -> Iterator[str]:
    """Yield why a configuration cannot apply a ladder to a pool, one sentence each, the field first."""
    pools = {other.name: other for other in config.pools}
    tenants = {tenant.name for tenant in config.tenants}
    for index, rung in enumerate(ladder.rungs):
        for tenant in rung.scope.tenants or ():
            if tenant not in tenants:
                yield f"rungs[{index}].scope.tenants: there is no tenant `{tenant}`; accepted: {_listed(tenants)}"
        if rung.template_argument is not None and not _takes_arguments(pool):
            yield (
                f"rungs[{index}].template_argument: {pool.engine} takes no arguments of the chat template; accepted:"
                " `prompt_suffix`, or another `pool`"
            )
        if rung.pool is None:
            continue
        target = pools.get(rung.pool)
        if target is None:
            yield f"rungs[{index}].pool: there is no pool `{rung.pool}`; accepted: {_listed(set(pools) - {pool.name})}"
        elif "interactive" not in target.lanes:
            yield f"rungs[{index}].pool: pool `{rung.pool}` serves no interactive work, so it cannot take any over"


def doubts(ladders: Mapping[str, Ladder], config: Config, today: date) -> Iterator[str]:
    """Yield what an operator should know of the ladders that are put in force, one sentence each, the pool first."""
    for pool in config.pools:
        if (ladder := ladders.get(pool.name)) is None:
            continue
        for sentence in (*problems(ladder, today), *warnings(ladder, today)):
            yield f"pool {pool.name}: {ladder.label}: {sentence}"
        for rung in ladder.rungs:
            if (lane := _missing_lane(rung, pool)) is not None:
                yield f"pool {pool.name}: rung `{rung.name}` does nothing, since the pool serves no {lane} work"


def _missing_lane(rung: Rung, pool: PoolSettings) -> str | None:
    """Return the lane without which a rung acts on nobody, if the pool does not serve it."""
    match rung.action:
        case RungAction.STOP_BULK | RungAction.PREEMPT_BULK:
            lane = "bulk"
        case RungAction.SHED_INTERACTIVE:
            lane = "interactive"
        case _:
            return None
    return None if lane in pool.lanes else lane


def _takes_arguments(pool: PoolSettings) -> bool:
    return registry.engine(pool.engine, pool.engine_version).takes_template_arguments


def _listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "none, since there are none"


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise LadderError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > _MOST_BYTES:
        raise LadderError(f"{path}: is larger than {_MOST_BYTES} bytes, so it is no ladder")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise LadderError(f"{path}: is not UTF-8 text") from None
