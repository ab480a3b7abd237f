"""Settings of the degradation ladders: which one a pool follows, and where what people do with them is kept."""

from typing import Annotated

from pydantic import Field

from llmshed.config.base import ACCEPTED, FilePath, Settings

SHIPPED_LADDERS = ("full", "source")
"""Names of the ladders that ship with llmshed."""
LadderPlace = Annotated[
    str,
    Field(
        pattern=r"^(source|full|[^\x00]*[./][^\x00]*)$",
        json_schema_extra={ACCEPTED: "`source`, `full`, or the path of a file, with a `/` or `.` in it"},
    ),
]
"""A shipped ladder, or a file; a path is told from a misspelt name by its `/` or `.`."""


class LadderSettings(Settings):
    """`[ladder]`: what is kept of rungs that people hold; the ladders themselves are named by the pools."""

    state_file: FilePath | None = None
    """File in which held rungs outlive the process; only its owner may write it. Unset: they end with the process."""
    audit_file: FilePath | None = None
    """File to which every hold, release, step of a ladder and reload is appended, one JSON object a line. Unset: they
    are kept in memory."""
