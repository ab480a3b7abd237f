"""What all settings models share."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """A frozen table of settings; an unknown name is an error, and no value is converted silently."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


ACCEPTED = "x-accepted"
"""Key of a type's JSON schema that holds the words in which errors tell what is accepted."""

Seconds = Annotated[float, Field(gt=0, le=1e9)]
"""A duration in seconds, up to some 31 years; TOML integers are taken too."""
Ratio = Annotated[float, Field(ge=0, lt=1)]
"""A share of a whole, 0 <= ratio < 1."""
Share = Annotated[float, Field(ge=0, le=1)]
"""A share of a whole that may be all of it, 0 <= share <= 1."""
Tokens = Annotated[int, Field(ge=1, le=10**12)]
"""A number of tokens, at least one."""
Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$",
        json_schema_extra={
            ACCEPTED: "1 to 63 of a-z, 0-9, `.`, `_` and `-`, with a letter or digit at both ends",
        },
    ),
]
"""A name that is safe as a metric label, a header value and a file name."""
ModelName = Annotated[
    str,
    Field(
        pattern=r"^[!-~]{1,256}$",
        json_schema_extra={ACCEPTED: "1 to 256 printable ASCII characters without spaces, as in `org/model`"},
    ),
]
"""A name that clients send in `model`; it is told in headers, so it holds nothing that a header could not."""
FilePath = Annotated[
    str,
    Field(
        min_length=1,
        pattern=r"^[^\x00]*$",
        json_schema_extra={ACCEPTED: "the path of a file; a relative one starts at the configuration's directory"},
    ),
]
"""The path of a file, relative to the directory of the file that names it."""
