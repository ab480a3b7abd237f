"""The whole configuration."""

from typing import Annotated

from pydantic import Field

from llmshed.config.base import Settings
from llmshed.config.counting import CountingSettings
from llmshed.config.lanes import LaneSettings
from llmshed.config.pools import AdmissionSettings, PoolSettings
from llmshed.config.server import LogSettings, ServerSettings, UpstreamSettings
from llmshed.config.tenants import TenantSettings


class Config(Settings):
    """llmshed.toml, validated."""

    server: ServerSettings = ServerSettings()
    """Listeners and life of the daemon."""
    log: LogSettings = LogSettings()
    """What is written down."""
    admission: AdmissionSettings = AdmissionSettings()
    """Rules for all pools."""
    lanes: LaneSettings = LaneSettings()
    """Thresholds and objectives."""
    counting: CountingSettings = CountingSettings()
    """Token counting."""
    upstream: UpstreamSettings = UpstreamSettings()
    """How replicas are asked."""
    tenants: tuple[TenantSettings, ...] = ()
    """Owners of keys; without any, the gateway serves loopback only unless told otherwise."""
    pools: Annotated[tuple[PoolSettings, ...], Field(min_length=1)]
    """Replicas by model and lane."""
