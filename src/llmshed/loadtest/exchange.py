"""One request on the wire, and the instants at which something of its answer came."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import aiohttp

from llmshed.engines.base import UpstreamFault
from llmshed.loadtest.replies import NOTHING_TOLD, Reply, read_head
from llmshed.workload.asks import Outcome, Sample

if TYPE_CHECKING:
    from llmshed.clock import Clock
    from llmshed.engines.base import EngineFailure, EngineRequest
    from llmshed.loadtest.wire import Wire
    from llmshed.workload.asks import Ask

MOST_ERROR_BYTES: Final = 65_536
MOST_DETAIL_CHARACTERS: Final = 300
_BUSY_STATUSES: Final = frozenset({429, 503})
_OUT_OF_FILES: Final = 24
"""EMFILE, by which it is the generator that could not send."""
NO_FILES: Final = "generator_out_of_files"


class Exchange:
    """A request that is sent once; `reply` tells what came of it, at any time.

    Args:
        wire: what its answer is read by.
        ask: what is asked.
        planned_at: when it was due.
        tries: how often it was sent before.
        clock: where instants come from.
        on_first_token: is called once, when the first output comes.
    """

    __slots__ = (
        "_ask",
        "_clock",
        "_detail",
        "_finished_at",
        "_on_first_token",
        "_outcome",
        "_planned_at",
        "_reason",
        "_sent_at",
        "_status",
        "_times",
        "_tokens",
        "_told",
        "_tries",
        "_wire",
    )

    def __init__(
        self,
        wire: "Wire",
        ask: "Ask",
        planned_at: float,
        clock: "Clock",
        *,
        tries: int = 0,
        on_first_token: Callable[[], None] | None = None,
    ) -> None:
        self._wire = wire
        self._ask = ask
        self._planned_at = self._sent_at = planned_at
        self._clock = clock
        self._tries = tries
        self._on_first_token = on_first_token
        self._times: list[float] = []
        self._tokens = 0
        self._finished_at: float | None = None
        self._outcome = Outcome.CANCELLED
        self._status: int | None = None
        self._told = NOTHING_TOLD
        self._reason, self._detail = "cancelled", "closed by the generator"

    async def run(
        self, session: aiohttp.ClientSession, url: str, request: "EngineRequest", headers: Mapping[str, str]
    ) -> None:
        """Send the request and follow its answer to the end; cancelling it closes the connection."""
        self._sent_at = self._clock.now()
        try:
            async with session.post(
                url + request.path, data=request.body, headers=headers, allow_redirects=False
            ) as response:
                self._status, self._told = response.status, read_head(response.headers)
                if response.status == 200:
                    await self._follow(response.content)
                else:
                    self._refused(await read_up_to(response.content, MOST_ERROR_BYTES))
        except asyncio.CancelledError:
            self._finished_at = self._clock.now()
            raise
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._lost(error)
        self._finished_at = self._clock.now()

    def reply(self) -> Reply:
        """Return what came of it so far; one that has not ended counts as cancelled now."""
        sample = Sample(
            ask=self._ask,
            planned_at=self._planned_at,
            sent_at=self._sent_at,
            token_times=tuple(self._times),
            finished_at=self._clock.now() if self._finished_at is None else self._finished_at,
            outcome=self._outcome,
            status=self._status,
            output_tokens=self._tokens,
            detail=self._detail,
        )
        return Reply(sample, self._told, self._tries, self._reason)

    async def _follow(self, content: aiohttp.StreamReader) -> None:
        """Stamp each piece as it is read; a piece may hold several events, which then came together."""
        reader = self._wire.reader()
        facts, times, now = reader.facts, self._times, self._clock.now
        async for piece in content.iter_any():
            at = now()
            events, tokens = facts.data_events, facts.output_tokens
            reader.feed(piece)
            self._tokens = facts.output_tokens
            # An event may hold several tokens, or none, such as that of the usage.
            came = min(facts.data_events - events, facts.output_tokens - tokens)
            if came > 0:
                if not times and self._on_first_token is not None:
                    self._on_first_token()
                times.extend((at,) * came)
        reader.end()
        self._tokens = facts.output_tokens
        if facts.failure is not None:
            self._failed(facts.failure)
        elif not facts.complete:
            self._end(Outcome.FAILED, "stream_cut", "the stream ended before its end was told")
        else:
            self._end(Outcome.FINISHED, "", "")

    def _refused(self, body: bytes) -> None:
        failure = self._wire.read_failure(self._status or 0, body)
        if self._told.reason is not None or self._status in _BUSY_STATUSES:
            self._end(Outcome.REFUSED, self._told.reason or failure.error_type, failure.message)
        else:
            self._failed(failure)

    def _failed(self, failure: "EngineFailure") -> None:
        busy = failure.fault is UpstreamFault.BUSY
        self._end(Outcome.REFUSED if busy else Outcome.FAILED, failure.error_type, failure.message)

    def _lost(self, error: BaseException) -> None:
        number = getattr(error, "os_error", error)
        if isinstance(number, OSError) and number.errno == _OUT_OF_FILES:
            self._end(Outcome.FAILED, NO_FILES, "the generator has no file descriptor left for a connection")
        elif isinstance(error, TimeoutError):
            self._end(Outcome.FAILED, "silence", "nothing came for longer than a client waits")
        else:
            self._end(Outcome.FAILED, "connection_lost", f"{type(error).__name__}: {error}")

    def _end(self, outcome: Outcome, reason: str, detail: str) -> None:
        self._outcome, self._reason = outcome, reason
        self._detail = " ".join(detail.split())[:MOST_DETAIL_CHARACTERS]


async def read_up_to(content: aiohttp.StreamReader, most_bytes: int) -> bytes:
    """Return a body, no more than about so many bytes of it."""
    taken = bytearray()
    async for piece in content.iter_any():
        taken += piece
        if len(taken) >= most_bytes:
            break
    return bytes(taken)
