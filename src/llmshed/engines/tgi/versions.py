"""What differs between the versions of Text Generation Inference, one row a change.

Read in the sources of each tag from v1.4.0 to v3.3.7: `router/src/lib.rs`, `server.rs` and `validation.rs`.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from llmshed.errors import ConfigError

Release = tuple[int, int, int]
AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """What holds from a release on.

    Args:
        since: the first release of which this holds.
        default_output_tokens: output of a request that names no ceiling; None where it fills `max_total_tokens`. The
            gateway always names one, so this matters only beside it.
        overrun_chunk_tokens: generation runs in chunks of this size and ends only between them, so a ceiling above one
            chunk may be overrun up to its next multiple; 0 where a ceiling that was sent is kept.
        needs_model: a body of the `/v1` routes without `model` is refused.
        takes_prompt_lists: `/v1/completions` takes a list of prompts.
        sends_done: streams of the `/v1` routes end with `[DONE]`.
    """

    since: Release
    default_output_tokens: int | None
    overrun_chunk_tokens: int
    needs_model: bool
    takes_prompt_lists: bool
    sends_done: bool


_1_4_0: Final = VersionFacts(
    since=(1, 4, 0),
    default_output_tokens=100,
    overrun_chunk_tokens=0,
    needs_model=True,
    takes_prompt_lists=False,
    sends_done=False,
)
_2_0_2: Final = replace(_1_4_0, since=(2, 0, 2), takes_prompt_lists=True)
_2_2_0: Final = replace(_2_0_2, since=(2, 2, 0), needs_model=False, sends_done=True)
# From here on a request without a ceiling runs in chunks until max_total_tokens is full ...
_3_0_0: Final = replace(_2_2_0, since=(3, 0, 0), default_output_tokens=None)
# ... and from here on one with a ceiling does too: validation.rs cuts it to DEFAULT_GENERATION_LENGTH a turn.
_3_1_1: Final = replace(_3_0_0, since=(3, 1, 1), overrun_chunk_tokens=1024)
VERSION_TABLE: Final = (_1_4_0, _2_0_2, _2_2_0, _3_0_0, _3_1_1)
"""Oldest first."""


def release_of(version: str) -> Release | None:
    """Read `3.3.6`, `v3.3.6-dev0` or `2.4` as three numbers; None for a text that is no version."""
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?![\d.])", version)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def facts_of(version: str) -> VersionFacts:
    """Return what holds of a version as a replica tells it.

    A text that is no version is taken for the newest: of all rows that one promises least, so an error costs room and
    never a broken promise. Releases before 1.4.0 are taken for 1.4.0.
    """
    release = release_of(version)
    if release is None:
        return VERSION_TABLE[-1]
    return next((row for row in reversed(VERSION_TABLE) if row.since <= release), VERSION_TABLE[0])


def check_version(version: str) -> str:
    """Return a version that an operator wrote, if it can be read.

    Raises:
        ConfigError: it is neither a version nor `auto`.
    """
    if version != AUTO and release_of(version) is None:
        problem = f'engine_version: "{version}" is not a version of tgi; accepted: one like "3.3.5", or "{AUTO}"'
        raise ConfigError((problem,))
    return version
