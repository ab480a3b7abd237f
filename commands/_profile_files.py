"""The profiles that `llmshed profile` reads: a file, or the one that ships for simulated replicas."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmshed.config.pools import PoolSettings
    from llmshed.profile import Profile

SHIPPED = "simulated"
"""Name of the profile that ships."""
_FORMAT = b"llmshed.profile/"


@dataclass(frozen=True, slots=True)
class Found:
    """A profile that was found, or why it cannot be used.

    Args:
        place: its file, or the name of the one that ships.
        pools: names of the pools of the configuration that use it.
        profile: its content; None when it is broken.
        problem: what is wrong with it; empty when nothing is.
    """

    place: str
    pools: tuple[str, ...]
    profile: "Profile | None"
    problem: str = ""


def read(name: str) -> "Profile":
    """Read a profile by its file, or by the name of the one that ships where there is no such file.

    Raises:
        ProfileError: it cannot be read, or holds mistakes; one line for each.
    """
    from llmshed.errors import ProfileError
    from llmshed.gateway.profile_file import read_profile, simulated_profile

    if not name:  # which would be the working directory
        raise ProfileError("'' names no file")
    return simulated_profile() if name == SHIPPED and not Path(name).exists() else read_profile(Path(name))


def search(folders: tuple[Path, ...], pools: "Sequence[PoolSettings]") -> Iterator[Found]:
    """Yield the profiles that pools use, then others in these folders, then the one that ships.

    Args:
        folders: where files that end in `.toml` are looked at; those that name another format are passed over.
        pools: those of the configuration.
    """
    from llmshed.config.addresses import SIMULATED

    used: dict[str, tuple[str, ...]] = {}
    shipped: tuple[str, ...] = ()
    for pool in pools:
        if pool.profile is not None:
            used[pool.profile] = (*used.get(pool.profile, ()), pool.name)
        elif all(replica.url == SIMULATED for replica in pool.replicas):
            shipped = (*shipped, pool.name)
    for place, names in used.items():
        yield _found(place, names)
    known = {Path(place).resolve() for place in used}
    for folder in folders:
        for file in sorted(folder.glob("*.toml")):
            if file.resolve() not in known and _is_profile(file):
                known.add(file.resolve())
                yield _found(str(file), ())
    yield _found(SHIPPED, shipped)


def _found(place: str, pools: tuple[str, ...]) -> Found:
    from llmshed.errors import ProfileError

    try:
        return Found(place, pools, read(place))
    except ProfileError as error:
        return Found(place, pools, None, str(error).splitlines()[0])


def _is_profile(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return _FORMAT in opened.read(65_536)
    except OSError:
        return False
