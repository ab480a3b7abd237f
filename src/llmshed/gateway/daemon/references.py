"""Whether the files that a configuration names can be used, so that `config check` says what `serve` would."""

from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from pathlib import Path

from llmshed.config.settings import Config
from llmshed.errors import ConfigError, LlmshedError
from llmshed.gateway.door.auth import read_admin_access, read_key_ring
from llmshed.gateway.hashing import read_hasher
from llmshed.gateway.ladders.files import doubts, read_ladders
from llmshed.gateway.profile_file import read_profile
from llmshed.profile.thresholds import differing_thresholds


def reference_problems(config: Config) -> tuple[str, ...]:
    """Return what is wrong with the files named in a valid configuration whose paths are whole; empty when all serve.

    Keys files, the admin token, the hash key, profiles, ladders and tokenizer directories are opened; hub ids are not
    asked for.
    """
    problems: list[str] = []
    for attempt in (read_key_ring, read_admin_access, read_ladders):
        problems += _said(partial(attempt, config))
    for index, pool in enumerate(config.pools):
        if pool.profile is not None:
            said = _said(partial(read_profile, Path(pool.profile)))
            problems += [f"pools[{index}].profile: {line}" for line in said]
        problems += [f"pools[{index}].tokenizer: {line}" for line in _tokenizer_problems(pool.tokenizer)]
    return (*problems, *_log_problems(config), *_ladder_problems(config))


def reference_doubts(config: Config, today: date) -> Iterator[str]:
    """Yield what `serve` would warn of in files that have no problem, a sentence each, the pool first.

    Told are thresholds that are not those a pool's profile was made for, and what is doubtful in its ladder on `today`.
    """
    for pool in config.pools:
        if pool.profile is not None:
            profile = read_profile(Path(pool.profile))
            for sentence in differing_thresholds(profile, config.lanes.interactive, config.lanes.bulk):
                yield f"pool {pool.name}: {sentence}"
    yield from doubts(read_ladders(config), config, today)


def _said(attempt: Callable[[], object]) -> tuple[str, ...]:
    try:
        attempt()
    except ConfigError as error:
        return error.problems
    except LlmshedError as error:
        return tuple(str(error).splitlines())
    return ()


def _tokenizer_problems(place: str) -> Iterator[str]:
    directory = Path(place)
    if directory.is_absolute() and not (directory / "tokenizer.json").is_file():
        yield f"{place}: no tokenizer.json in it; accepted: a directory that has one, a hub id, or `auto`"


def _ladder_problems(config: Config) -> Iterator[str]:
    files = {"state_file": config.ladder.state_file, "audit_file": config.ladder.audit_file}
    for setting, place in files.items():
        if place is not None and not Path(place).parent.is_dir():
            yield f"ladder.{setting}: {place}: there is no directory {Path(place).parent}"


def _log_problems(config: Config) -> Iterator[str]:
    if config.log.hash_key_file is not None:
        yield from _said(partial(read_hasher, Path(config.log.hash_key_file)))
    sink = Path(config.log.decisions)
    if sink.is_absolute() and not sink.parent.is_dir():
        yield f"log.decisions: {sink}: there is no directory {sink.parent}"
