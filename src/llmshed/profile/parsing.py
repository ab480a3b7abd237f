"""From the text of a profile file to a Profile."""

from llmshed.config.paths import spelled
from llmshed.config.texts import TomlSyntaxError, line_of, read_toml
from llmshed.config.validation import validated
from llmshed.errors import ProfileError
from llmshed.profile.model import Profile

STAND_INS = {
    "schema": "llmshed.profile/1",
    "name": "unnamed",
    "version": "0",
    "budget": {"gross_ceiling_tokens": 10**12, "hard_cap_sequences": 1, "basis": "declared"},
    "gross_ceiling_tokens": 10**12,
    "hard_cap_sequences": 1,
    "basis": "declared",
    "safe_tokens_per_second": 1.0,
    "sequences": 1,
    "seconds_per_token": 1.0,
    "unloaded_ttft_p50_seconds": 1.0,
    "unloaded_ttft_p95_seconds": 1.0,
    "p50": 1,
    "p90": 1,
    "p99": 1,
}
"""A valid value for each field without a default, so that rules between fields can be checked around a gap."""


def parse_profile(text: str, source: str) -> Profile:
    """Read and validate a profile.

    Args:
        text: TOML.
        source: name of the file, for messages.

    Raises:
        ProfileError: one line for every mistake, `SOURCE:LINE: path: what is wrong, what is accepted`.
    """
    try:
        raw, lines = read_toml(text)
    except TomlSyntaxError as error:
        raise ProfileError(f"{source}:{error}") from None
    profile, mistakes = validated(Profile, raw, STAND_INS)
    if profile is None:
        found = sorted((line_of(lines, mistake.path), spelled(mistake.path), mistake.message) for mistake in mistakes)
        raise ProfileError("\n".join(f"{source}:{line}: {path}: {message}" for line, path, message in found))
    return profile
