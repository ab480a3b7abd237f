"""The settings in force at one time, with everything that follows from them alone; a reload makes the next one."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b

from llmshed.admission.request import Lane
from llmshed.config.settings import Config
from llmshed.gateway.contract.refusals import ContractWriter
from llmshed.gateway.desk import Desk
from llmshed.gateway.door.auth import AdminAccess, KeyRing
from llmshed.gateway.relay.relay import Relay
from llmshed.gateway.relay.timeouts import LaneTimeouts


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """What a request comes under.

    Args:
        config: the settings.
        version: short hash of them, told in decision lines and metrics.
        thresholds_version: short hash of the lanes' thresholds and objectives alone, which a profile has too.
        keys: whose keys are known.
        admin: who may use the admin listener.
        contract: puts refusals into HTTP.
        desk: brings requests to the core and lets in those that its mode lets in.
        relay: sends requests that were let in to replicas.
        timeouts: silences that each lane permits.
    """

    config: Config
    version: str
    thresholds_version: str
    keys: KeyRing
    admin: AdminAccess
    contract: ContractWriter
    desk: Desk
    relay: Relay
    timeouts: Mapping[Lane, LaneTimeouts]


def config_version(config: Config) -> str:
    """Return a short name for these settings: the same settings have the same one on every gateway."""
    return blake2b(config.model_dump_json().encode(), digest_size=6).hexdigest()


def lane_timeouts(config: Config) -> dict[Lane, LaneTimeouts]:
    """Return the silences that each lane permits; overflow is never relayed."""
    return {
        Lane.INTERACTIVE: LaneTimeouts.of_lane(config.lanes.interactive),
        Lane.BULK: LaneTimeouts.of_lane(config.lanes.bulk),
    }
