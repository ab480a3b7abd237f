"""The life of one replica: asked until it answers, met, watched while it serves, asked again when it is gone."""

import asyncio
import logging
from typing import Protocol

from llmshed.clock import Clock
from llmshed.config.server import UpstreamSettings
from llmshed.engines.base import EngineInfo
from llmshed.errors import EngineError, LlmshedError
from llmshed.gateway.relay.upstream import LostError, NotSentError, UpstreamClient, ask
from llmshed.gateway.replicas.health import ReplicaHealth
from llmshed.gateway.replicas.likeness import Likeness, ProfileMismatchError
from llmshed.gateway.replicas.serving import Meeting, Serving

SUSPICION_SECONDS = 0.1
"""Time between probes of a replica that refused a connection: three of them make it down."""
INFO_SECONDS = 50.0
"""How often a replica that serves is asked whether it is still the same: with the pause between two looks, and that
until stale evaluations are told, one that was replaced shows within a minute."""
RETRY_SECONDS = 15.0
"""Time until a replica is met again that answers but cannot be used, for its tokenizer say."""

_log = logging.getLogger(__name__)


class ReplicaHost(Protocol):
    """Whom a life tells what becomes of its replica."""

    def admits(self, name: str, info: EngineInfo) -> str | None:
        """Return why a replica that tells this may not join its pool, or None."""

    def came_up(self, name: str, serving: Serving) -> None:
        """Note that the replica serves, with these numbers; also called when they change."""

    def went_down(self, name: str, cause: str) -> None:
        """Note that the replica serves no more."""

    def is_last(self, name: str) -> bool:
        """Say whether no other replica of its pool is up."""

    def troubled(self, name: str, error: LlmshedError) -> None:
        """Note why the replica cannot be used yet; told once for each new cause."""


class ReplicaLife:
    """Runs one replica's life; `health` is fed by live traffic too."""

    def __init__(
        self,
        name: str,
        meeting: Meeting,
        client: UpstreamClient,
        settings: UpstreamSettings,
        clock: Clock,
        host: ReplicaHost,
        likeness: Likeness,
    ) -> None:
        """Prepare; `run` begins."""
        self._name = name
        self._meeting = meeting
        self._client = client
        self._settings = settings
        self._clock = clock
        self._host = host
        self._likeness = likeness
        self._suspicion = asyncio.Event()
        self._trouble: str | None = None
        self.health = ReplicaHealth()

    def suspect(self) -> None:
        """Have the replica probed now, since live traffic fared badly with it."""
        self._suspicion.set()

    async def run(self) -> None:
        """Live until cancelled.

        A replica that once served and cannot be met again is down. One that another life served, before a reload,
        keeps serving by its old numbers for as long as it can be reached.
        """
        served = False
        while True:
            try:
                serving = await self._meet()
            except LlmshedError as error:
                self._note_trouble(error)
                unreachable = isinstance(error, NotSentError)
                if unreachable:
                    self.health.refused()
                    self._likeness.lost()
                if served or self.health.is_down(is_last=True):
                    self._host.went_down(self._name, str(error))
                await asyncio.sleep(self._interval_seconds if unreachable else RETRY_SECONDS)
                continue
            served = True
            self._trouble = None
            self.health.answered(self._clock.now())
            self._host.came_up(self._name, serving)
            cause = await self._watch(serving)
            if cause is not None:
                self._host.went_down(self._name, cause)

    async def _meet(self) -> Serving:
        """Make the replica ready to serve; what an engine tells may be a surprise, and no life may end by one.

        Raises:
            LlmshedError: it cannot serve now.
        """
        try:
            return await self._met()
        except LlmshedError:
            raise
        except Exception as error:
            _log.exception("meeting_crashed", extra={"replica": self._name})
            raise EngineError(f"the gateway failed on it: {type(error).__name__}") from error

    async def _met(self) -> Serving:
        info = await self._meeting.info()
        if (objection := self._host.admits(self._name, info)) is not None:
            raise EngineError(objection)
        serving = await self._meeting.meet(info)
        self._likeness.met(serving)
        if (objection := self._refusal()) is not None:
            raise ProfileMismatchError(objection)
        return serving

    def _refusal(self) -> str | None:
        """Return why the pool does not want a replica that is not as it was measured; its last one it always wants."""
        objection = self._likeness.refusal
        if objection is not None and self._host.is_last(self._name):
            self._likeness.kept_as_last()
            return None
        return objection

    async def _watch(self, serving: Serving) -> str | None:
        """Return why the replica is down, or None when it came back as another one."""
        ask_info_at = self._clock.now() + INFO_SECONDS
        while True:
            await self._until_next_look()
            if self.health.suspected or self._clock.now() - self.health.answered_at >= self._interval_seconds:
                await self._probe()
            if self.health.is_down(is_last=self._host.is_last(self._name)):
                return "refuses connections" if self.health.refusals else "calls itself ill"
            if self._clock.now() >= ask_info_at:
                ask_info_at = self._clock.now() + INFO_SECONDS
                if await self._has_changed(serving):
                    return None
                self._likeness.recounted(await self._meeting.recount(serving))
            if (objection := self._refusal()) is not None:
                return objection

    @property
    def _interval_seconds(self) -> float:
        return self._settings.probe_interval_seconds

    async def _until_next_look(self) -> None:
        pause = min(SUSPICION_SECONDS, self._interval_seconds) if self.health.suspected else self._interval_seconds
        try:
            async with asyncio.timeout(pause):
                await self._suspicion.wait()
        except TimeoutError:
            return
        self._suspicion.clear()

    async def _probe(self) -> None:
        try:
            status, _ = await ask(
                self._client, self._meeting.url + "/health", None, self._settings.probe_timeout_seconds
            )
        except NotSentError:
            self.health.refused()
        except LostError:
            self.health.slow()
        else:
            if status == 200:
                self.health.answered(self._clock.now())
            else:
                self.health.complained()

    async def _has_changed(self, serving: Serving) -> bool:
        try:
            return await self._meeting.info() != serving.info
        except EngineError:
            return False  # the probes tell whether it is gone

    def _note_trouble(self, error: LlmshedError) -> None:
        if str(error) != self._trouble:
            self._trouble = str(error)
            self._host.troubled(self._name, error)
