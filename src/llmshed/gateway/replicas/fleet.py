"""All replicas of the gateway: kept alive, told to the core, and looked up by the handlers."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from llmshed.admission.events import PolicyChanged, ReplicaDown, ReplicaRemoved, ReplicaUp
from llmshed.admission.policy import ModelLimits, ReplicaSpec
from llmshed.admission.request import Request
from llmshed.admission.settings import admission_policy
from llmshed.admission.signals.governor import shrunk_budget
from llmshed.clock import Clock
from llmshed.config.addresses import SIMULATED
from llmshed.config.pools import ReplicaSettings
from llmshed.config.settings import Config
from llmshed.engines import registry
from llmshed.engines.base import Engine, EngineInfo
from llmshed.errors import LlmshedError, TokenizerError
from llmshed.gateway.driver import Driver
from llmshed.gateway.relay.upstream import UpstreamClient
from llmshed.gateway.replicas.facts import declared_facts, told_facts
from llmshed.gateway.replicas.life import ReplicaLife
from llmshed.gateway.replicas.likeness import Likeness, LikenessObserver
from llmshed.gateway.replicas.pool_tools import CounterLoader, CounterShelf, PoolPlan, warn_of_thresholds
from llmshed.gateway.replicas.served_counts import CountObserver, ServedCounts
from llmshed.gateway.replicas.serving import CountMismatchError, Meeting, Serving
from llmshed.gateway.replicas.signals import SignalMeans, SignalObserver
from llmshed.gateway.replicas.simulated import SimulatedReplicas
from llmshed.gateway.replicas.watches import SignalWatches
from llmshed.gateway.tasks import Spawned, Tasks
from llmshed.ladder.model import Ladder
from llmshed.ladder.staleness import common_facts
from llmshed.observability.metrics import UpstreamErrorKind
from llmshed.profile.comparison import Fact
from llmshed.tokenizing.base import PromptCounter

_log = logging.getLogger(__name__)

_FORGOTTEN_SECONDS = 0.2
"""How often a removed simulated replica is looked at."""


class FleetObserver(SignalObserver, LikenessObserver, CountObserver, Protocol):
    """Who counts what the fleet sees."""

    def upstream_failed(self, replica: str, kind: UpstreamErrorKind) -> None:
        """Count a request that a replica failed."""


@dataclass(slots=True, eq=False)
class _Member:
    """One configured replica; `serving` is None until it was met, and stays when it goes down, for what runs there."""

    settings: ReplicaSettings
    plan: PoolPlan
    likeness: Likeness
    life: ReplicaLife | None = None
    task: Spawned | None = None
    serving: Serving | None = None
    up: bool = False
    trouble: LlmshedError | None = None

    @property
    def pool(self) -> str:
        return self.plan.settings.name


class Fleet:
    """Owns the lives of all replicas and follows the configuration.

    It is the one part that tells the core of replicas, and of the policy, since the model ids of `auto` pools come from
    the replicas. A reload leaves untouched what it does not change; a replica that must be met anew serves by its old
    numbers until it has been.
    """

    def __init__(
        self, driver: Driver, upstream: UpstreamClient, clock: Clock, observer: FleetObserver, load: CounterLoader
    ) -> None:
        """Start without replicas; `reconcile` brings them."""
        self._driver = driver
        self._upstream = upstream
        self._clock = clock
        self._observer = observer
        self._shelf = CounterShelf(load)
        self._tasks = Tasks()
        self._signals = SignalWatches(SignalMeans(driver, upstream, clock, observer), self._tasks)
        self._simulated = SimulatedReplicas()
        self.served_counts = ServedCounts(observer, clock.now)
        self._members: dict[str, _Member] = {}
        self._config: Config | None = None
        self._ladders: dict[str, Ladder] = {}
        self._model_ids: dict[str, str] = {}
        self._first_up = asyncio.Event()

    def reconcile(self, config: Config, ladders: Mapping[str, Ladder] | None = None) -> None:
        """Follow a configuration and its pools' ladders: start what is new, meet anew what changed, let go of the rest.

        Raises:
            ProfileError: a profile cannot be used; nothing was changed.
        """
        plans = {pool.name: PoolPlan.of(pool, config) for pool in config.pools}
        wanted = {replica.name: (replica, plans[pool.name]) for pool in config.pools for replica in pool.replicas}
        self._config = config
        self._ladders = dict(ladders or {})
        self._shelf.keep_only(m.serving.counter for m in self._members.values() if m.serving is not None)
        for name in [name for name in self._members if name not in wanted]:
            self._let_go(name)
        self._model_ids = {pool: model for pool, model in self._model_ids.items() if pool in plans}
        self._tell_policy()
        for plan in plans.values():
            warn_of_thresholds(plan)
        for name, (settings, plan) in wanted.items():
            self._follow(name, settings, plan)

    async def until_serving(self) -> None:
        """Wait until a replica has come up for the first time."""
        await self._first_up.wait()

    async def close(self) -> None:
        """End every life and every simulated replica."""
        await self._tasks.cancel_all()
        await self._simulated.close()

    @property
    def model_ids(self) -> Mapping[str, str]:
        """Return the model id that each pool's engine told, by pool."""
        return self._model_ids

    @property
    def troubles(self) -> Mapping[str, str]:
        """Return why replicas cannot be used now, by replica."""
        return {name: str(member.trouble) for name, member in self._members.items() if member.trouble is not None}

    def url(self, replica: str) -> str:
        """Return a replica's base address.

        Raises:
            KeyError: it is not configured, or was never met.
        """
        return self._serving(replica).url

    def engine_of(self, replica: str) -> Engine:
        """Return the adapter of a replica's engine and version.

        Raises:
            KeyError: it is not configured, or was never met.
        """
        return self._serving(replica).engine

    def engine(self, pool: str) -> Engine:
        """Return the adapter that reads a pool's requests: that of its first replica that is up, or was.

        Raises:
            KeyError: no such pool.
        """
        if (serving := self._first(pool)) is not None:
            return serving.engine
        settings = next((member.plan.settings for member in self._members.values() if member.pool == pool), None)
        if settings is None:
            raise KeyError(pool)
        return registry.engine(settings.engine, settings.engine_version, allow_truncate=settings.allow_truncate)

    def counter(self, pool: str) -> PromptCounter:
        """Return the counter of a pool.

        Raises:
            TokenizerError: its tokenizer could not be loaded, or disagrees with the engine.
        """
        if (serving := self._first(pool)) is not None:
            return serving.counter
        for member in self._members.values():
            if member.pool == pool and isinstance(member.trouble, TokenizerError):
                raise member.trouble
        raise TokenizerError(f"the tokenizer of pool {pool} is not loaded yet")

    @property
    def tokenizers_fail(self) -> bool:
        """Say whether tokenizers are what keeps every pool from serving."""
        pools = {member.pool for member in self._members.values()}
        failing = {m.pool for m in self._members.values() if isinstance(m.trouble, TokenizerError)}
        up = {member.pool for member in self._members.values() if member.up}
        return bool(pools) and pools <= failing - up

    def is_met(self, pool: str) -> bool:
        """Say whether a replica of a pool was met, so that its requests can be read and counted."""
        return self._first(pool) is not None

    def info(self, pool: str) -> EngineInfo | None:
        """Return what a pool's first replica told of itself; None before any was met."""
        serving = self._first(pool)
        return None if serving is None else serving.info

    def specs(self, pool: str) -> tuple[ReplicaSpec, ...]:
        """Return the numbers of a pool's replicas that are up."""
        return tuple(
            member.serving.spec
            for member in self._members.values()
            if member.pool == pool and member.up and member.serving is not None
        )

    def facts(self, pool: str) -> dict[str, Fact]:
        """Return what the replicas of a pool that are up are known to be, as far as answers may differ by it."""
        return common_facts(
            [
                {**declared_facts(member.plan.settings.declared), **told_facts(member.plan.settings, member.serving)}
                for member in self._members.values()
                if member.pool == pool and member.up and member.serving is not None
            ]
        )

    def limits(self) -> tuple[ModelLimits, ...]:
        """Return the limits of every replica that was met, up or not."""
        return tuple(member.serving.spec.limits for member in self._members.values() if member.serving is not None)

    def violations(self) -> tuple[str, ...]:
        """Return the invariants that do not hold, as sentences; empty when all do."""
        return self._signals.violations()

    # What live traffic tells.

    def sent(self, replica: str, request: Request, output_ceiling_tokens: int | None) -> None:
        """Expect an answer of the replica."""
        self._signals.sent(replica, request, output_ceiling_tokens)

    def heard(self, replica: str, key: int) -> None:
        """Take data for a sign that the replica works."""
        self._signals.heard(replica, key)

    def ended(self, replica: str, key: int) -> None:
        """Expect nothing more for a request."""
        self._signals.ended(replica, key)

    def answered(self, replica: str) -> None:
        """Take an answer for a sign of health."""
        self._signals.spoke(replica)
        life = self._life(replica)
        if life is not None:
            life.health.answered(self._clock.now())

    def counted(self, replica: str, counted_tokens: int, engine_tokens: int) -> None:
        """Compare what both counted of a prompt that was served."""
        self.served_counts.compare(replica, counted_tokens, engine_tokens)

    def failed(self, replica: str, kind: UpstreamErrorKind) -> None:
        """Count a failure, and have the replica probed where it may be gone; a busy or slow one is not suspected."""
        self._observer.upstream_failed(replica, kind)
        life = self._life(replica)
        if life is None:
            return
        match kind:
            case UpstreamErrorKind.BUSY:
                self._signals.spoke(replica)
                life.health.answered(self._clock.now())
            case UpstreamErrorKind.NOT_SENT:
                life.health.refused()
                life.suspect()
            case UpstreamErrorKind.STATUS | UpstreamErrorKind.STREAM:
                self._signals.spoke(replica)
                life.suspect()
            case UpstreamErrorKind.LOST:
                life.suspect()
            case UpstreamErrorKind.FIRST_BYTE_TIMEOUT | UpstreamErrorKind.IDLE_TIMEOUT:
                pass

    # What lives tell: `ReplicaHost`.

    def admits(self, name: str, info: EngineInfo) -> str | None:
        """Return why a replica may not join its pool: one pool is one model."""
        member = self._members[name]
        if member.plan.settings.model != "auto":
            return None
        others = {
            other.serving.info.model_id
            for other in self._members.values()
            if other is not member and other.pool == member.pool and other.up and other.serving is not None
        }
        if not others - {info.model_id}:
            return None
        return (
            f"it serves {info.model_id}, the other replicas of pool {member.pool} serve {others.pop()}:"
            " each model needs a pool of its own"
        )

    def came_up(self, name: str, serving: Serving) -> None:
        """Tell the core of a replica that serves."""
        member = self._members[name]
        member.serving, member.up, member.trouble = serving, True, None
        if self._model_ids.get(member.pool) != serving.info.model_id:
            self._model_ids[member.pool] = serving.info.model_id
            self._tell_policy()
        for _ in serving.self_check.mismatches:
            self._observer.count_mismatched(member.pool)
        budget = shrunk_budget(serving.spec, member.likeness.kept_ratio)
        self._driver.tell(ReplicaUp(replace(serving.spec, budget=budget)))
        self._signals.came_up(name, member.plan, serving, member.likeness)
        self._first_up.set()
        names = {"replica": name, "pool": member.pool, "model": serving.info.model_id, "profile": serving.spec.profile}
        seen = {"engine_version": serving.info.version, "probes_compared": serving.self_check.compared}
        most = {"safe_budget_tokens": budget.safe_budget_tokens, "hard_cap_sequences": budget.hard_cap_sequences}
        _log.info("replica_up", extra=names | seen | most)

    def went_down(self, name: str, cause: str) -> None:
        """Tell the core of a replica that serves no more."""
        member = self._members[name]
        if not member.up:
            return
        member.up = False
        self._signals.went_down(name)
        self._driver.tell(ReplicaDown(name))
        _log.warning("replica_down", extra={"replica": name, "pool": member.pool, "cause": cause})

    def is_last(self, name: str) -> bool:
        """Say whether no other replica of its pool is up."""
        pool = self._members[name].pool
        return not any(member.up for other, member in self._members.items() if other != name and member.pool == pool)

    def troubled(self, name: str, error: LlmshedError) -> None:
        """Keep and log why a replica cannot be used."""
        member = self._members[name]
        member.trouble = error
        if isinstance(error, CountMismatchError):
            for _ in range(error.mismatches):
                self._observer.count_mismatched(member.pool)
        _log.warning("replica_not_usable", extra={"replica": name, "pool": member.pool, "cause": str(error)})

    def _follow(self, name: str, settings: ReplicaSettings, plan: PoolPlan) -> None:
        known = self._members.get(name)
        if known is not None and known.settings == settings and known.pool == plan.settings.name:
            unchanged = known.plan.same_as(plan)
            known.plan = plan
            known.likeness.follow(plan)
            if unchanged:
                return
            self._end_life(known)
            self._begin_life(name, known)
            return
        if known is not None:
            self._let_go(name)
        likeness = Likeness(name, plan, self._observer, simulated=settings.url == SIMULATED)
        member = self._members[name] = _Member(settings, plan, likeness)
        self._begin_life(name, member)

    def _begin_life(self, name: str, member: _Member) -> None:
        async def live() -> None:
            url = member.settings.url
            if url == SIMULATED:
                url = await self._simulated.url(name)
            config = member.plan.config
            meeting = Meeting(self._upstream, name, url, member.plan, self._shelf.get)
            client, clock = self._upstream, self._clock
            member.life = ReplicaLife(name, meeting, client, config.upstream, clock, self, member.likeness)
            await member.life.run()

        member.task = self._tasks.spawn(live(), f"replica {name}")

    def _end_life(self, member: _Member) -> None:
        if member.task is not None:
            member.task.cancel()
        member.life = None

    def _let_go(self, name: str) -> None:
        member = self._members.pop(name)
        self._end_life(member)
        self._signals.went_down(name)
        member.likeness.forgotten()
        self.served_counts.forget(name)
        if member.serving is not None:
            self._driver.tell(ReplicaRemoved(name))
        if member.settings.url == SIMULATED:
            self._tasks.spawn(self._stop_simulated(name), f"stop simulated {name}")

    async def _stop_simulated(self, name: str) -> None:
        """Stop a simulated replica once the core has forgotten it, which is when nothing runs there any more."""
        while any(  # noqa: ASYNC110 - the core is pure: it has no event to wait for
            replica.name == name for replica in self._driver.state().replicas
        ):
            await asyncio.sleep(_FORGOTTEN_SECONDS)
        if name not in self._members:
            await self._simulated.stop(name)

    def _tell_policy(self) -> None:
        if self._config is not None:
            self._driver.tell(PolicyChanged(admission_policy(self._config, self._model_ids, self._ladders)))

    def _serving(self, replica: str) -> Serving:
        serving = self._members[replica].serving
        if serving is None:
            raise KeyError(replica)
        return serving

    def _life(self, replica: str) -> ReplicaLife | None:
        member = self._members.get(replica)
        return None if member is None else member.life

    def _first(self, pool: str) -> Serving | None:
        met = [member for member in self._members.values() if member.pool == pool and member.serving is not None]
        chosen = next((member for member in met if member.up), met[0] if met else None)
        return None if chosen is None else chosen.serving
