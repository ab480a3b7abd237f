"""What all settings models share."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """A frozen table of settings; an unknown name is an error, and no value is converted silently."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


Seconds = Annotated[float, Field(gt=0, strict=False, allow_inf_nan=False)]
"""A duration in seconds; TOML integers are taken too."""
Ratio = Annotated[float, Field(ge=0, lt=1, strict=False, allow_inf_nan=False)]
"""A share of a whole, 0 <= ratio < 1."""
Tokens = Annotated[int, Field(ge=1)]
"""A number of tokens, at least one."""
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$")]
"""A name that is safe as a metric label, a header value and a file name."""
