"""Putting a gateway together from what was read of its configuration, and giving it another one while it runs."""

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from llmshed.admission.controller import AdmissionController
from llmshed.admission.settings import admission_policy
from llmshed.clock import Clock
from llmshed.config.settings import Config
from llmshed.gateway.contract.refusals import ContractWriter
from llmshed.gateway.counting.pool import CountingPool
from llmshed.gateway.daemon.app import Gateway, Parts
from llmshed.gateway.daemon.reload import Inputs
from llmshed.gateway.daemon.snapshot import Snapshot, config_version, lane_timeouts
from llmshed.gateway.desk import Desk, Enforcing
from llmshed.gateway.door.auth import read_admin_access, read_key_ring
from llmshed.gateway.door.parsing import BodyThread
from llmshed.gateway.driver import Driver
from llmshed.gateway.hashing import read_hasher
from llmshed.gateway.ladders.files import doubts, read_ladders
from llmshed.gateway.observing import Observing
from llmshed.gateway.relay.by_scheme import UpstreamByScheme
from llmshed.gateway.relay.relay import Relay
from llmshed.gateway.replicas.fleet import Fleet
from llmshed.gateway.replicas.pool_tools import counter_loader
from llmshed.observability.decisions import DecisionLog
from llmshed.observability.goodput import objectives_of
from llmshed.observability.observer import Observer
from llmshed.profile.thresholds import thresholds_version

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reports:
    """Where a gateway tells of itself.

    Args:
        observer: metrics and decision log.
        decision_log: the decisions that are remembered.
        on_config: is told of each configuration that is taken.
    """

    observer: Observer
    decision_log: DecisionLog
    on_config: Callable[[Config], None]


def read_inputs(config: Config) -> Inputs:
    """Read the secrets and ladders that a configuration names.

    Raises:
        ConfigError: a file cannot be used.
    """
    return Inputs(config, read_key_ring(config), read_admin_access(config), read_ladders(config))


class Assembly:
    """A gateway with the means to give it another configuration."""

    def __init__(self, inputs: Inputs, reports: Reports, clock: Clock) -> None:
        """Make every part; needs a running event loop. Nothing listens and no replica is met before `take`.

        Raises:
            ConfigError: the hash key's file cannot be used.
        """
        config = inputs.config
        hasher = read_hasher(None if config.log.hash_key_file is None else Path(config.log.hash_key_file))
        driver = Driver(AdmissionController(admission_policy(config, ladders=inputs.ladders), clock.now()), clock)
        upstream = UpstreamByScheme(config.upstream)
        self._clock = clock
        self._reports = reports
        self._fleet = Fleet(
            driver, upstream, clock, reports.observer, counter_loader(hasher.key, reports.observer.fastokens_dropped)
        )
        self._upstream = upstream
        # Each outlives a reload: requests that came under the other mode end where they began.
        self._desks: dict[str, Desk] = {"enforce": Enforcing(driver), "observe": Observing(driver, self._fleet.specs)}
        parts = Parts(
            clock=clock,
            driver=driver,
            fleet=self._fleet,
            parsing=BodyThread(),
            counting=CountingPool(config.counting, clock),
            observer=reports.observer,
            decision_log=reports.decision_log,
            hasher=hasher,
            upstream=upstream,
        )
        self.gateway = Gateway(parts, self._snapshot(inputs))

    def take(self, inputs: Inputs) -> str:
        """Put a configuration in force, all at once, and return its version.

        Raises:
            ProfileError: a profile cannot be used; nothing was changed.
        """
        config = inputs.config
        self._fleet.reconcile(config, inputs.ladders)
        today = datetime.fromtimestamp(self._clock.wall(), UTC).date()
        for doubt in doubts(inputs.ladders, config, today):
            _log.warning("ladder_doubt", extra={"doubt": doubt})
        snapshot = self._snapshot(inputs)
        self.gateway.use(snapshot)
        self._reports.decision_log.use_history(config.server.decision_history)
        self._reports.on_config(config)
        self._reports.observer.config_loaded(snapshot.version, objectives_of(config.lanes), self._clock.wall())
        return snapshot.version

    async def close(self) -> None:
        """End the replicas' lives, the connections to them and the threads that read and count."""
        await self._fleet.close()
        await self.gateway.ladder_book.close()
        await self._upstream.close()
        self.gateway.parsing.close()
        self.gateway.counting.close()
        self.gateway.driver.close()

    def _snapshot(self, inputs: Inputs) -> Snapshot:
        admission = inputs.config.admission
        draw = random.Random().random  # noqa: S311 - spreads retries: nobody gains anything by guessing it
        contract = ContractWriter(draw, admission.retry_jitter_ratio, admission.max_retry_after_seconds)
        return Snapshot(
            config=inputs.config,
            version=config_version(inputs.config),
            thresholds_version=thresholds_version(inputs.config.lanes.interactive, inputs.config.lanes.bulk),
            keys=inputs.keys,
            admin=inputs.admin,
            contract=contract,
            desk=self._desks[admission.mode],
            relay=Relay(self._upstream, contract, self._clock, self._fleet.url, self._fleet),
            timeouts=lane_timeouts(inputs.config),
        )
