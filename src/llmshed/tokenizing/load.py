"""Where a tokenizer's files come from: a directory, the Hugging Face hub, or the package itself."""

import os
import re
import socket
import urllib.request
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

from llmshed.errors import TokenizerError
from llmshed.tokenizing.files import MOST_BYTES, OPTIONAL, TOKENIZER, TokenizerFiles, read_files

EMBEDDED = "embedded"
"""Name of the small tokenizer that the package carries."""

_CONNECT_SECONDS = 5.0

ACCEPTED = (
    f"accepted: a directory with {TOKENIZER}, a hub id as in `Qwen/Qwen3-8B` or `Qwen/Qwen3-8B@revision`, `embedded`"
)

_HUB_ID = re.compile(
    r"(?P<repository>[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?)(?:@(?P<revision>[\w./-]{1,100}))?", re.ASCII
)


def find(spec: str) -> TokenizerFiles:
    """Load the tokenizer that an operator names: a directory, `embedded`, or a hub id, tried in this order.

    Raises:
        TokenizerError: there is no such tokenizer, or its files cannot be used.
    """
    # Unlike those of pathlib, these call a name that no file can have no directory, instead of raising.
    if os.path.isdir(spec):  # noqa: PTH112 - see above
        return from_directory(Path(spec))
    if spec == EMBEDDED:
        return embedded()
    if os.path.isfile(spec):  # noqa: PTH113 - see above
        raise TokenizerError(f"{spec!r} is a file; give the directory that holds it ({ACCEPTED})")
    if (hub_id := _HUB_ID.fullmatch(spec)) is not None and ".." not in spec:
        return from_hub(hub_id["repository"], hub_id["revision"])
    raise TokenizerError(f"no tokenizer at {spec!r}: no such directory; {ACCEPTED}")


def from_directory(directory: Path) -> TokenizerFiles:
    """Load the files of one directory, as the hub lays them out.

    Raises:
        TokenizerError: the directory lacks tokenizer.json, or a file cannot be read or used.
    """
    name = str(directory)
    if not (directory / TOKENIZER).is_file():
        packed = " (only a .gz of it: gunzip it first)" if (directory / f"{TOKENIZER}.gz").is_file() else ""
        raise TokenizerError(f"{name}: the directory has no {TOKENIZER}{packed}")
    paths = {file: directory / file for file in (TOKENIZER, *OPTIONAL) if (directory / file).is_file()}
    return read_files(name, "directory", {file: _read(name, path) for file, path in paths.items()})


def embedded() -> TokenizerFiles:
    """Load the package's own small tokenizer: byte-level BPE with a ChatML template, for first runs and tests."""
    folder = resources.files(__package__) / EMBEDDED
    contents = {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name in MOST_BYTES}
    return read_files(EMBEDDED, "embedded", contents)


def from_hub(repository: str, revision: str | None = None) -> TokenizerFiles:
    """Load the files of a model repository through huggingface_hub, its cache, its token and its environment.

    Files that the repository lacks are left out. Without a network, files in the cache are used.

    Raises:
        TokenizerError: the repository or its tokenizer.json cannot be had; the text says what to do.
    """
    # Imported late: it costs 0.2 s and most installations load their tokenizer from a directory.
    from huggingface_hub import constants  # noqa: PLC0415 - see above

    name = repository if revision is None else f"{repository}@{revision}"
    # The library repeats each failed request for half a minute, so that a hub out of reach is looked for only once.
    cached_only = constants.HF_HUB_OFFLINE or not _reachable(constants.ENDPOINT)
    found = {
        file: _download(name, repository, revision, file, cached_only=cached_only) for file in (TOKENIZER, *OPTIONAL)
    }
    return read_files(name, "hub", {file: _read(name, path) for file, path in found.items() if path is not None})


def _reachable(endpoint: str) -> bool:
    """Say whether the hub's host takes connections; behind a proxy, which may reach what this machine cannot, yes."""
    if urllib.request.getproxies():
        return True
    address = urlsplit(endpoint)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        with socket.create_connection((address.hostname or "", port), timeout=_CONNECT_SECONDS):
            return True
    except OSError:
        return False


def _download(name: str, repository: str, revision: str | None, file: str, *, cached_only: bool) -> Path | None:
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 - see above
    from huggingface_hub.errors import (  # noqa: PLC0415 - see above
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return Path(hf_hub_download(repository, file, revision=revision, local_files_only=cached_only))
    except GatedRepoError:
        raise TokenizerError(
            f"{name}: the model is gated; accept its terms on the hub and set HF_TOKEN, or give a directory"
        ) from None
    except RepositoryNotFoundError:
        raise TokenizerError(
            f"no tokenizer at {name!r}: no such directory, and no such model on the hub (a private one needs HF_TOKEN)"
        ) from None
    except RevisionNotFoundError:
        raise TokenizerError(f"{name}: the hub has the model but no such revision") from None
    except LocalEntryNotFoundError:
        if file != TOKENIZER:
            return None
        raise TokenizerError(
            f"no tokenizer at {name!r}: no such directory, the hub cannot be reached and its cache has no {file}; "
            f"download the model's tokenizer files where there is a network and give their directory"
        ) from None
    except EntryNotFoundError:
        if file != TOKENIZER:
            return None
        raise TokenizerError(f"{name}: the model has no {TOKENIZER} on the hub; convert its tokenizer first") from None
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise TokenizerError(f"{name}: {file} cannot be fetched from the hub: {reason}") from None


def _read(name: str, path: Path) -> bytes:
    most = MOST_BYTES[path.name]
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise TokenizerError(f"{name}: {path.name} cannot be read: {error.strerror}") from None
    if len(content) > most:
        raise TokenizerError(f"{name}: {path.name} is larger than {most} bytes, so it is no {path.name}")
    return content
