"""In which fields two profiles differ, and what each of them is for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from llmshed.config.display import leaves
from llmshed.config.paths import spelled
from llmshed.profile.comparison import KINDS
from llmshed.profile.model import Profile


class Use(StrEnum):
    """What a field of a profile is for."""

    ADMISSION = "admission"
    """A number that requests are decided by."""
    LIKENESS = "likeness"
    """A fact that a replica is compared with."""
    THRESHOLDS = "thresholds"
    """What the lanes were when it was made, which those of the configuration are compared with."""
    RECORD = "record"
    """Told to people."""


_ADMISSION = re.compile(
    r"budget\.(gross_ceiling_tokens|guard_band_ratio|hard_cap_sequences|preemptions_per_minute)"
    r"|prefill\..*|decode\.seconds_per_token|latency\.unloaded_ttft_p95_seconds|limits\..*|bulk\..*"
)
_LIKENESS = re.compile(r"decode\.curve.*|fingerprint\.behaviour\..*")


@dataclass(frozen=True, slots=True)
class Difference:
    """One field with its value in each of two profiles; None where one does not have it."""

    field: str
    one: Any
    other: Any

    @property
    def use(self) -> Use:
        """Return what the field is for."""
        return use_of(self.field)


def use_of(field: str) -> Use:
    """Return what a field is for, by its spelled path."""
    if _ADMISSION.fullmatch(field):
        return Use.ADMISSION
    if field.removeprefix("fingerprint.") in KINDS or _LIKENESS.fullmatch(field):
        return Use.LIKENESS
    return Use.THRESHOLDS if field.startswith("lanes.") else Use.RECORD


def fields_of(profile: Profile) -> dict[str, Any]:
    """Return every field of a profile by its spelled path, those of absent sections left out."""
    found: dict[str, Any] = {}
    for path, value in leaves(profile):
        found[spelled(path)] = value
    return found


def differences(one: Profile, other: Profile) -> Iterator[Difference]:
    """Yield the fields that differ, in the order of the first profile, then those that only the other has."""
    mine, theirs = _known(fields_of(one)), _known(fields_of(other))
    for field in mine | theirs:
        if mine.get(field) != theirs.get(field):
            yield Difference(field, mine.get(field), theirs.get(field))


def _known(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in fields.items() if value is not None}
