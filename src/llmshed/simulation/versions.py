"""What the versions of TGI do differently about output ceilings, KV and prefill."""

import re
from dataclasses import dataclass
from enum import Enum

OLDEST = (1, 4, 0)
NEWEST = (4, 0, 0)


class Chunking(Enum):
    """Which output ceilings are cut into chunks of 1,024 tokens, each queued anew."""

    NEVER = "never"
    """Before 3.0: a request holds KV for its whole ceiling and runs in one go."""
    WHEN_ABSENT = "when_absent"
    """3.0.0 to 3.1.0: only the ceiling that a request did not name."""
    ALWAYS = "always"
    """From 3.1.1: every ceiling, so that a request may run on to the next multiple of a chunk."""


@dataclass(frozen=True, slots=True)
class VersionRules:
    """Scheduling rules of one version.

    Args:
        default_output_tokens: ceiling of a request that names none; None fills what `max_total_tokens` leaves.
        chunking: which ceilings are cut into chunks.
        chunked_prefill: whether a prompt is prefilled in pieces beside decoding sequences.
        waiting_served_ratio: least share of the running batch that must wait before a join pauses it; used only
            without chunked prefill.
        knows_prefix_caching: whether it can keep the KV of prompts that ended.
    """

    default_output_tokens: int | None
    chunking: Chunking
    chunked_prefill: bool
    waiting_served_ratio: float
    knows_prefix_caching: bool = False


def parse_version(version: str) -> tuple[int, int, int]:
    """Read `3.3.5` or `3.3.6-dev0` as numbers.

    Raises:
        ValueError: not three numbers, or a version whose behaviour is not known; the text says what is accepted.
    """
    match = re.fullmatch(r"v?(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:-[A-Za-z0-9.]+)?", version, re.ASCII)
    if match is None:
        raise ValueError(f"TGI version {version!r} is not of the form MAJOR.MINOR.PATCH, for example 3.3.5")
    major, minor, patch = (int(part) for part in match.groups())
    if not OLDEST <= (major, minor, patch) < NEWEST:
        raise ValueError(f"TGI version {version!r} is not known here: 1.4.0 to 3.x are")
    return major, minor, patch


def version_rules(version: str) -> VersionRules:
    """Return the rules of a version, after the tags v1.4.5, v2.4.0, v3.0.0, v3.1.0, v3.1.1 and v3.3.5.

    Raises:
        ValueError: as `parse_version`.
    """
    number = parse_version(version)
    if number < (2, 0, 0):
        return VersionRules(100, Chunking.NEVER, chunked_prefill=False, waiting_served_ratio=1.2)
    if number < (3, 0, 0):
        return VersionRules(
            100,
            Chunking.NEVER,
            chunked_prefill=False,
            waiting_served_ratio=0.3,
            knows_prefix_caching=number >= (2, 3, 0),
        )
    chunking = Chunking.WHEN_ABSENT if number < (3, 1, 1) else Chunking.ALWAYS
    return VersionRules(None, chunking, chunked_prefill=True, waiting_served_ratio=0.3, knows_prefix_caching=True)
