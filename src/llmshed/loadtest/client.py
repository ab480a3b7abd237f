"""The target of a run: where it is, how it is asked, and what it tells of itself."""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import aiohttp

from llmshed.errors import EngineError
from llmshed.loadtest.exchange import Exchange, read_up_to
from llmshed.loadtest.prompts import PromptMaker, shared_parts

if TYPE_CHECKING:
    from llmshed.admission.signals.readings import ReplicaReading
    from llmshed.clock import Clock
    from llmshed.engines.base import EngineRequest, ReadableEngine
    from llmshed.loadtest.replies import Reply
    from llmshed.loadtest.wire import Wire
    from llmshed.workload.asks import Ask

SILENCE_SECONDS: Final = 600.0
"""How long nothing may come of an answer: what SDKs wait by default."""
PAGE_SECONDS: Final = 10.0
MOST_PAGE_BYTES: Final = 1 << 22
METRICS: Final = "/metrics"
COUNTED_TOKENS: Final = 512
"""Of a text by which two counts are compared: long enough that another tokenizer shows."""


class Client:
    """Connections to one target; an asynchronous context manager.

    Args:
        url: address of a gateway or a replica, without a path.
        engine: adapter of the engine that is there.
        wire: form of the requests.
        prompts: maker of their texts.
        clock: where instants come from.
        key: bearer key; None to send none.
    """

    def __init__(
        self,
        url: str,
        engine: "ReadableEngine",
        wire: "Wire",
        prompts: PromptMaker,
        clock: "Clock",
        key: str | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.engine = engine
        self.wire = wire
        self.prompts = prompts
        self.clock = clock
        self._headers = {"content-type": "application/json"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"
        if not engine.keeps_connections:
            self._headers["connection"] = "close"
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the pool of connections, which has no bound of its own."""
        self._session = open_session()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self._opened().close()
        self._session = None

    def exchange(
        self,
        ask: "Ask",
        planned_at: float,
        *,
        tries: int = 0,
        on_first_token: Callable[[], None] | None = None,
    ) -> Exchange:
        """Return a request that is not sent yet; `carry_out` sends it."""
        return Exchange(self.wire, ask, planned_at, self.clock, tries=tries, on_first_token=on_first_token)

    async def carry_out(
        self, exchange: Exchange, request: "EngineRequest", headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a request and follow it to its end."""
        sent = self._headers if not headers else {**self._headers, **headers}
        await exchange.run(self._opened(), self.url, request, sent)

    async def send(self, ask: "Ask", on_first_token: Callable[[], None] | None = None) -> "Reply":
        """Make the prompt of an ask, send it as soon as it is made, and return what came of it.

        Raises:
            PromptError: the prompt cannot be made.
        """
        request = await asyncio.get_running_loop().run_in_executor(None, self._written, ask)
        exchange = self.exchange(ask, self.clock.now(), on_first_token=on_first_token)
        await self.carry_out(exchange, request)
        return exchange.reply()

    async def read(self) -> "ReplicaReading":
        """Read the replica's signals.

        Raises:
            EngineError: its metrics cannot be read.
        """
        body = await self.page(METRICS)
        return self.engine.read_metrics(body, None, self.clock.now())

    async def page(self, path: str) -> bytes:
        """Return a page of the target.

        Raises:
            EngineError: nobody answers there, or not with 200.
        """
        try:
            async with (
                asyncio.timeout(PAGE_SECONDS),
                self._opened().get(self.url + path, headers=self._headers, allow_redirects=False) as page,
            ):
                body = await read_up_to(page.content, MOST_PAGE_BYTES)
                if page.status != 200:
                    raise EngineError(f"{self.url}{path} answered {page.status}")
                return body
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise EngineError(f"nobody answers at {self.url}{path}: {str(error) or type(error).__name__}") from None

    async def counted_text(self, model: str) -> tuple[int, int | None]:
        """Return the tokens of a plain text by our count and by that of the engine; None where it has no count to give.

        Raises:
            EngineError: nobody answers.
        """
        text = self.prompts.text("count", COUNTED_TOKENS + self.prompts.least_tokens)
        own = self.prompts.plain_count(text)
        request = self.engine.count_request(text, model=model)
        try:
            async with (
                asyncio.timeout(PAGE_SECONDS),
                self._opened().post(
                    self.url + request.path, data=request.body, headers=self._headers, allow_redirects=False
                ) as answer,
            ):
                body = await read_up_to(answer.content, MOST_PAGE_BYTES)
                return own, self.engine.read_text_count(body) if answer.status == 200 else None
        except (aiohttp.ClientError, OSError) as error:
            raise EngineError(
                f"nobody answers at {self.url}{request.path}: {str(error) or type(error).__name__}"
            ) from None

    def _written(self, ask: "Ask") -> "EngineRequest":
        return self.wire.request(ask, self.prompts.text(ask.id, ask.input_tokens, shared_parts(ask)))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client was not entered")
        return self._session


def open_session() -> aiohttp.ClientSession:
    """Return a session that asks a target directly, whatever the environment says of proxies."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=PAGE_SECONDS, sock_read=SILENCE_SECONDS),
        trust_env=False,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("Accept-Encoding",),
    )
