"""The model of a profile file."""

from itertools import chain
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from llmshed.config.base import ACCEPTED, Name, Settings
from llmshed.config.contradictions import lane_contradictions
from llmshed.config.validation import refuse_contradictions
from llmshed.profile.contradictions import (
    budget_contradictions,
    bulk_contradictions,
    decode_contradictions,
    lanes_beyond_limits,
    latency_contradictions,
    limit_contradictions,
    output_contradictions,
)
from llmshed.profile.fingerprint import Fingerprint
from llmshed.profile.sections import Budget, Bulk, Decode, Lanes, Latency, Limits, Output, Prefill, Windows

Version = Annotated[
    str,
    Field(
        pattern=r"^[0-9A-Za-z]([0-9A-Za-z._+-]{0,62}[0-9A-Za-z])?$",
        json_schema_extra={ACCEPTED: 'text of 1 to 64 letters, digits, `.`, `_`, `+` and `-`, as in "3" or "2026.1"'},
    ),
]


class Profile(Settings):
    """One version of one profile, valid in itself; whether it fits a replica is for the fingerprint to say."""

    schema_: Annotated[Literal["llmshed.profile/1"], Field(alias="schema")]
    """Version of this format."""
    name: Name
    """Name of the profile."""
    version: Version
    """Version of the profile: raised with every change of its numbers."""
    budget: Budget
    """What the replica carries."""
    prefill: Prefill | None = None
    """How fast prompts are processed."""
    decode: Decode | None = None
    """How fast tokens are produced."""
    latency: Latency | None = None
    """How soon an idle replica answers."""
    output: Output | None = None
    """How long outputs were."""
    limits: Limits = Limits()
    """What the model takes."""
    lanes: Lanes = Lanes()
    """Thresholds and objectives."""
    bulk: Bulk = Bulk()
    """What bulk may and must get."""
    windows: Windows = Windows()
    """Over what the figures were taken."""
    fingerprint: Fingerprint = Fingerprint()
    """What it was measured on."""

    @property
    def label(self) -> str:
        """Return `name@version`, as told to clients in `x-llmshed-profile`."""
        return f"{self.name}@{self.version}"

    @model_validator(mode="after")
    def _agree(self) -> Self:
        refuse_contradictions(
            chain(
                budget_contradictions(self.budget),
                decode_contradictions(self.decode),
                latency_contradictions(self.latency),
                output_contradictions(self.output),
                limit_contradictions(self.limits),
                lane_contradictions(self.lanes.interactive, self.lanes.bulk),
                lanes_beyond_limits(self.lanes, self.limits),
                bulk_contradictions(self.bulk),
            )
        )
        return self
