"""A file that describes a replica: one of an operator's, or one that ships with llmshed, by its name."""

from importlib import resources
from typing import TYPE_CHECKING

from llmshed.errors import ReplicaFileError

from ._input import MissingInputError, as_text, read_bytes, shown_name

if TYPE_CHECKING:
    from llmshed.simulation.hardware.model import ReplicaDescription, ReplicaFile

_MOST_BYTES = 1_048_576
_SHIPPED = "replicas"
_SUFFIX = ".toml"


def shipped_replicas() -> tuple[str, ...]:
    """Return the names of the replicas that ship with llmshed, in alphabetical order."""
    folder = resources.files("llmshed.profiles") / _SHIPPED
    return tuple(sorted(file.name.removesuffix(_SUFFIX) for file in folder.iterdir() if file.name.endswith(_SUFFIX)))


def read_replica(named: str) -> "ReplicaDescription":
    """Return what a replica file describes; arguments and errors as those of `read_replica_file`."""
    return read_replica_file(named).describe()


def read_replica_file(named: str) -> "ReplicaFile":
    """Return a replica file, validated.

    Args:
        named: the name of a shipped file, else the path of a file, or `-` for standard input. A name goes first, so
            `./NAME` is needed for a file of that name without a suffix.

    Raises:
        MissingInputError: there is neither such a name nor such a file; the text lists the names.
        UnreadableTextError: the file is not UTF-8.
        ReplicaFileError: it holds mistakes; one line for each.
    """
    from llmshed.simulation.hardware.parsing import parse_replica_file

    names = shipped_replicas()
    if named in names:
        own = resources.files("llmshed.profiles") / _SHIPPED / f"{named}{_SUFFIX}"
        return parse_replica_file(own.read_text(encoding="utf-8"), f"{named}{_SUFFIX}")
    try:
        content = read_bytes(named, _MOST_BYTES + 1)
    except MissingInputError as error:
        raise MissingInputError(f"{error}; replicas that ship with llmshed are {', '.join(names)}") from None
    source = shown_name(named)
    if len(content) > _MOST_BYTES:
        raise ReplicaFileError(f"{source}: is longer than {_MOST_BYTES} bytes, so it describes no replica")
    return parse_replica_file(as_text(content, named).removeprefix("\ufeff"), source)
