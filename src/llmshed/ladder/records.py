"""The records of drills, `llmshed.drills/1`: what each path was worth, when, on which models."""

from datetime import datetime
from typing import Annotated, Final, Literal, Self

from pydantic import Field

from llmshed.config.base import Settings
from llmshed.ladder.evaluation import Interval

SCHEMA: Final = "llmshed.drills/1"
MOST_KEPT = 50
"""Drills of one file, the newest: a year of one a week."""
MOST_BYTES = 8 << 20
"""Largest file that is read, some thirty times what fifty drills of eight paths take."""

Count = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(max_length=1024)]


class Estimate(Settings):
    """A number and its bounds of 95 %."""

    value: float
    """The estimate."""
    low: float
    """Lower bound."""
    high: float
    """Upper bound."""

    @classmethod
    def of(cls, interval: Interval | None) -> Self | None:
        """Return an interval as it is written."""
        return None if interval is None else cls(value=interval.value, low=interval.low, high=interval.high)


class PathRecord(Settings):
    """What one path was worth in one drill."""

    rung: Text | None
    """The rung; null for the primary path."""
    terms: Annotated[tuple[Text, ...], Field(strict=False)]
    """What was done to the requests."""
    pool: Text
    """The pool that answered."""
    model: Text
    """Its model, as it is asked for."""
    facts: dict[Text, str | int]
    """What its replicas told of themselves, in the fields of a fingerprint."""
    cases: Count
    """Cases that were sent."""
    answered: Count
    """Cases that have a result."""
    changed: Count
    """Answers that say they were changed as was asked for."""
    result: Estimate | None
    """Mean result; null without one."""
    gap: Estimate | None
    """Share of the primary's result that is lost; null for the primary path, and where too little was answered."""
    ttft_seconds: float | None
    """Median time to the first token."""
    latency_seconds: float | None
    """Median time to the last one."""
    input_tokens: Count
    """Tokens of all prompts, as the engine counted them."""
    output_tokens: Count
    """Tokens of all answers, likewise."""


class DrillRecord(Settings):
    """One drill of one pool's ladder."""

    schema_: Annotated[Literal["llmshed.drill/1"], Field(alias="schema")]
    """Version of this record."""
    time: Annotated[datetime, Field(strict=False)]
    """When it ended."""
    pool: Text
    """The pool that was asked."""
    ladder: Text
    """Name and version of its ladder."""
    set_name: Text
    """Name of the file of cases."""
    set_sha256: Text
    """Digest of that file: results of other cases are no trend."""
    paths: Annotated[tuple[PathRecord, ...], Field(min_length=1, strict=False)]
    """The primary path, then the degraded ones."""

    @property
    def primary(self) -> PathRecord:
        """Return the primary path."""
        return self.paths[0]

    def path(self, rung: str) -> PathRecord | None:
        """Return the path of a rung; None where it was not drilled."""
        return next((path for path in self.paths if path.rung == rung), None)


class DrillFile(Settings):
    """A file of drills, newest first."""

    schema_: Annotated[Literal["llmshed.drills/1"], Field(alias="schema")]
    """Version of this file."""
    drills: Annotated[tuple[DrillRecord, ...], Field(strict=False)] = ()
    """The drills."""

    def with_newest(self, drill: DrillRecord) -> "DrillFile":
        """Return the file with one more drill, and without the oldest where it is full."""
        return self.model_copy(update={"drills": (drill, *self.drills)[:MOST_KEPT]})


NO_DRILLS = DrillFile.model_validate({"schema": SCHEMA})
"""What stands where nothing was drilled yet."""
