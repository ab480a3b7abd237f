"""Files that hold a secret or its digest: only their owner may read them."""

import os
import stat
from pathlib import Path

from llmshed.errors import ConfigError


def read_secret_file(path: Path, setting: str) -> bytes:
    """Return the bytes of a file that nobody else can read.

    Raises:
        ConfigError: it cannot be read, or others can; the text names the setting and the file, never its content.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & _forbidden_mode(path):
                raise ConfigError(
                    (f"{setting}: {path}: mode {mode:04o} lets others read the file; run `chmod 600 {path}`",)
                )
            return file.read()
    except OSError as error:
        raise ConfigError((f"{setting}: {path}: cannot be read: {error.strerror}",)) from None


def _forbidden_mode(path: Path) -> int:
    """Return the permission bits that a secret may not have.

    systemd hands over credentials with an access list, which shows as a group-read bit; its directory is private.
    """
    directory = os.environ.get("CREDENTIALS_DIRECTORY")
    if directory and path.resolve().is_relative_to(Path(directory).resolve()):
        return stat.S_IRWXO
    return stat.S_IRWXG | stat.S_IRWXO
