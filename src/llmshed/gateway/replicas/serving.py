"""What a replica that has been met offers, and how it is met: its description, tokenizer, self-check and numbers."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import orjson

from llmshed.admission.policy import ReplicaSpec
from llmshed.admission.settings import EngineLimits, EngineManners, replica_spec, spec_warnings
from llmshed.engines import registry
from llmshed.engines.base import Engine, EngineInfo
from llmshed.engines.tgi.versions import AUTO
from llmshed.errors import EngineError, TokenizerError
from llmshed.gateway.relay.upstream import UpstreamClient, ask
from llmshed.gateway.replicas.pool_tools import CounterRecipe, PoolPlan
from llmshed.gateway.replicas.selfcheck import RECOUNTED, SelfCheck, check_counts
from llmshed.tokenizing.base import PromptCounter

RECOUNT_SECONDS = 15.0
"""Most that counting again may take of a life, which minds nothing else meanwhile."""

_log = logging.getLogger(__name__)


class CountMismatchError(TokenizerError):
    """The gateway and the engine count probes differently, and the pool refuses to serve so."""

    def __init__(self, pool: str, what: str, mismatches: int) -> None:
        """Keep how many probes differ beside the sentence."""
        super().__init__(f"the tokenizer of pool {pool} counts otherwise than its engine: {what}")
        self.mismatches = mismatches


@dataclass(frozen=True, slots=True)
class Serving:
    """A replica that can serve.

    Args:
        url: its base address.
        info: what it told of itself.
        engine: adapter for its version.
        counter: counts as it does.
        spec: its numbers, derated if the self-check says so.
        self_check: what the self-check found.
    """

    url: str
    info: EngineInfo
    engine: Engine
    counter: PromptCounter
    spec: ReplicaSpec
    self_check: SelfCheck


async def ask_info(client: UpstreamClient, url: str, engine: Engine, timeout_seconds: float) -> EngineInfo:
    """Ask a replica for its description.

    Raises:
        EngineError: it cannot be reached, or does not describe itself as this engine does.
    """
    status, body = await ask(client, url + "/info", None, timeout_seconds)
    if status != 200:
        raise EngineError(f"/info answers {status}")
    try:
        described = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise EngineError("/info: the answer is not JSON") from None
    return engine.read_info(described)


class Meeting:
    """Meets one replica: everything that has to be known before it gets work.

    Args:
        client: the way to it.
        name: its name.
        url: its base address.
        plan: what it is run by.
        counter_of: returns the counter for a recipe, loading it once for all.
    """

    def __init__(
        self,
        client: UpstreamClient,
        name: str,
        url: str,
        plan: PoolPlan,
        counter_of: Callable[[CounterRecipe], Awaitable[PromptCounter]],
    ) -> None:
        """Prepare to meet a replica."""
        self._client = client
        self._name = name
        self._plan = plan
        self._counter_of = counter_of
        self._warned: set[str] = set()
        self.url = url

    async def info(self) -> EngineInfo:
        """Ask the replica for its description.

        Raises:
            EngineError: it cannot be reached, or does not describe itself as this engine does.
        """
        reader = registry.engine(self._plan.settings.engine, self._plan.settings.engine_version)
        return await ask_info(self._client, self.url, reader, self._timeout_seconds)

    async def meet(self, info: EngineInfo) -> Serving:
        """Turn what the replica told into what it can serve.

        Raises:
            TokenizerError: its tokenizer cannot be had, or disagrees with the engine and the pool says `refuse`.
            ConfigError: its version is none that is known.
        """
        pool = self._plan.settings
        version = info.version if pool.engine_version == AUTO else pool.engine_version
        engine = registry.engine(pool.engine, version, allow_truncate=pool.allow_truncate)
        counter = await self._counter_of(CounterRecipe.of(pool, self._plan.config.counting, info.model_id))
        found = await check_counts(self._client, self.url, engine, counter, self._timeout_seconds)
        spec = self._spec(info, EngineManners(engine.overrun_chunk_tokens(version), engine.prefill_blocks_starts))
        for sentence in found.unverified:
            self._warn("counts_unverified", sentence)
        if found.mismatches:
            spec = self._judge(found, spec)
        return Serving(self.url, info, engine, counter, spec, found)

    async def recount(self, serving: Serving) -> SelfCheck:
        """Count some probes again on a replica that serves, in a quarter of a minute at most.

        Only what agreed when it was met is counted: of what did not, the pool has already made what it makes of it. An
        engine that cannot be asked now, or is too slow, is no other engine.
        """
        nothing = SelfCheck(0, (), ())
        if self._plan.profile is None or serving.self_check.mismatches:
            return nothing
        try:
            async with asyncio.timeout(RECOUNT_SECONDS):
                return await check_counts(
                    self._client, self.url, serving.engine, serving.counter, self._timeout_seconds, RECOUNTED
                )
        except (TimeoutError, EngineError):
            return nothing

    @property
    def _timeout_seconds(self) -> float:
        return self._plan.config.upstream.probe_timeout_seconds

    def _spec(self, info: EngineInfo, manners: EngineManners) -> ReplicaSpec:
        limits = EngineLimits(
            info.max_concurrent_requests, info.max_input_tokens, info.max_total_tokens, info.max_batch_total_tokens
        )
        plan = self._plan
        spec = replica_spec(plan.config, plan.settings, self._name, limits, manners, plan.profile)
        for sentence in spec_warnings(spec, limits, plan.profile):
            self._warn("replica_numbers", sentence)
        return spec

    def _judge(self, found: SelfCheck, spec: ReplicaSpec) -> ReplicaSpec:
        """Act on counts that differ from the engine's as the pool says."""
        pool = self._plan.settings
        what = f"{len(found.mismatches)} of {found.compared} probes differ; {found.mismatches[0]}"
        match pool.on_count_mismatch:
            case "refuse":
                raise CountMismatchError(pool.name, what, len(found.mismatches))
            case "derate":
                self._warn("counts_differ_derated", what)
                kept = math.floor(spec.budget.gross_ceiling_tokens * (1 - pool.derate_ratio))
                return replace(spec, budget=replace(spec.budget, gross_ceiling_tokens=max(1, kept)))
            case "warn":
                self._warn("counts_differ", what)
                return spec

    def _warn(self, event: str, sentence: str) -> None:
        """Say each thing once in this replica's life, however often it is met."""
        if sentence not in self._warned:
            self._warned.add(sentence)
            _log.warning(event, extra={"replica": self._name, "pool": self._plan.settings.name, "detail": sentence})
