"""Where a profile is read from disk."""

from importlib import resources
from pathlib import Path

from llmshed.errors import ProfileError
from llmshed.profile import Profile, parse_profile

_MOST_BYTES = 1_048_576
_SIMULATED = "simulated.toml"


def read_profile(path: Path) -> Profile:
    """Read and validate a profile file.

    Raises:
        ProfileError: it cannot be read, or holds mistakes; one line for each.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > _MOST_BYTES:
        raise ProfileError(f"{path}: is larger than {_MOST_BYTES} bytes, so it is no profile")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ProfileError(f"{path}: is not UTF-8 text") from None
    return parse_profile(text, str(path))


def simulated_profile() -> Profile:
    """Return the profile of the simulated replica, which ships with llmshed."""
    own = resources.files("llmshed.profiles") / _SIMULATED
    return parse_profile(own.read_text(encoding="utf-8"), _SIMULATED)
