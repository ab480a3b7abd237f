"""Settings of the tenants: whose keys allow what."""

from typing import Annotated, Literal

from pydantic import Field

from llmshed.config.base import FilePath, Name, Settings, Tokens


class TenantSettings(Settings):
    """`[[tenants]]`: one owner of keys."""

    name: Name
    """Unique name; it stands in logs, never in metrics."""
    keys_file: FilePath
    """File of digest lines (`sha256:HEX`, one a line, from `llmshed config key`); only its owner may read it."""
    intents: Annotated[tuple[Literal["interactive", "bulk"], ...], Field(min_length=1)] = ("interactive", "bulk")
    """Intents that the tenant's keys allow."""
    default_intent: Literal["interactive", "bulk"] = "interactive"
    """Intent of a request that declares none."""
    priority_class: Literal["high", "normal", "low"] = "normal"
    """Class of the tenant's requests; a client may only lower it."""
    weight: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """Share of the tokens beside other tenants that wait; without effect while nothing waits in the gateway."""
    max_concurrent_requests: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Quota: most requests at once."""
    max_reserved_tokens: Tokens | None = None
    """Quota: most reserved tokens at once."""
