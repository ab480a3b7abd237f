"""The whole configuration."""

from itertools import chain
from typing import Annotated, Self

from pydantic import Field, model_validator

from llmshed.config.base import Settings
from llmshed.config.contradictions import (
    counting_contradictions,
    ladder_file_contradictions,
    lane_contradictions,
    listener_contradictions,
    pool_contradictions,
    residence_contradictions,
    tenant_contradictions,
)
from llmshed.config.counting import CountingSettings
from llmshed.config.ladders import LadderSettings
from llmshed.config.lanes import LaneSettings
from llmshed.config.pools import AdmissionSettings, PoolSettings
from llmshed.config.server import LogSettings, ServerSettings, UpstreamSettings
from llmshed.config.tenants import TenantSettings
from llmshed.config.validation import refuse_contradictions


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
    ladder: LadderSettings = LadderSettings()
    """What is kept of degradation ladders."""
    tenants: tuple[TenantSettings, ...] = ()
    """Owners of keys; without any, the gateway serves loopback only unless told otherwise."""
    pools: Annotated[tuple[PoolSettings, ...], Field(min_length=1)]
    """Replicas by model and lane."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        refuse_contradictions(
            chain(
                listener_contradictions(self.server, self.tenants),
                lane_contradictions(self.lanes.interactive, self.lanes.bulk),
                residence_contradictions(self.lanes),
                counting_contradictions(self.counting, self.server),
                ladder_file_contradictions(self.ladder, self.log.decisions),
                tenant_contradictions(self.tenants),
                pool_contradictions(self.pools),
            )
        )
        return self
