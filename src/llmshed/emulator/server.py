"""One emulated replica on a socket: routes, key, errors, start, drain and stop."""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from aiohttp import web

from llmshed.clock import Clock, SystemClock
from llmshed.emulator.chat import ChatRoutes
from llmshed.emulator.completions import CompletionRoutes
from llmshed.emulator.control import ControlRoutes
from llmshed.emulator.failures import TgiError, error_answer, json_answer
from llmshed.emulator.health import HealthRoutes
from llmshed.emulator.idle import IdleCloser
from llmshed.emulator.infer import Infer
from llmshed.emulator.native import NativeRoutes
from llmshed.emulator.platforms import PlatformRoutes
from llmshed.emulator.replica import Replica
from llmshed.emulator.settings import EmulatorSettings
from llmshed.emulator.vocabulary import Vocabulary
from llmshed.emulator.wire import info
from llmshed.errors import EngineError
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.scheduler import Scheduler
from llmshed.tokenizing.load import find

_log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_GUARDED = frozenset(
    {
        "/",
        "/generate",
        "/generate_stream",
        "/v1/chat/completions",
        "/v1/completions",
        "/vertex",
        "/invocations",
        "/tokenize",
    }
)
"""Paths behind the key, whatever the method; `GET /` alone is none of them."""
_PREFLIGHT = {"access-control-allow-methods": "GET,POST", "access-control-allow-headers": "content-type"}
"""What TGI adds to its answer to any OPTIONS request, whatever the path."""
_NEVER_SECONDS = 86_400.0
"""Longest life of an idle connection: TGI's server closes none by itself."""


class Emulator:
    """One replica; `start` and `stop` it on the event loop that it is to run on."""

    def __init__(
        self,
        settings: EmulatorSettings | None = None,
        clock: Clock | None = None,
        vocabulary: Vocabulary | None = None,
        scheduler: ReplicaModel | None = None,
    ) -> None:
        """Prepare a replica that does not listen yet.

        Args:
            settings: what it is; None for the defaults.
            clock: where its time comes from.
            vocabulary: several replicas may share one, which is costly to load.
            scheduler: idle model with the parameters of the settings, such as one that is recorded; None for its own.
        """
        self.settings = EmulatorSettings() if settings is None else settings
        self._clock = SystemClock() if clock is None else clock
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._infer: Infer | None = None
        self._vocabulary = vocabulary
        self._reopening: asyncio.Task[None] | None = None
        self._address = ("127.0.0.1", 0)
        self._hurried = asyncio.Event()
        self._idle = IdleCloser()
        own = Scheduler(self.settings.parameters) if scheduler is None else scheduler
        self.replica = Replica(self.settings, self._clock, own)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Load the tokenizer, listen, and return the URL; port 0 takes a free one.

        Raises:
            TokenizerError: the tokenizer cannot be loaded.
            EngineError: the address cannot be listened on.
        """
        if self._vocabulary is None:
            loop = asyncio.get_running_loop()
            self._vocabulary = await loop.run_in_executor(None, lambda: Vocabulary(find(self.settings.tokenizer)))
        self._infer = Infer(self.replica, self._vocabulary)
        self._runner = web.AppRunner(
            self._application(self._infer),
            access_log=None,
            auto_decompress=False,
            handler_cancellation=True,
            keepalive_timeout=_NEVER_SECONDS,
            shutdown_timeout=0.1,
        )
        await self._runner.setup()
        try:
            await self._listen(host, port)
        except OSError as error:
            await self.stop()
            raise EngineError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        bound_port: int = self._runner.addresses[0][1]
        self._address = (host, bound_port)
        return f"http://{f'[{host}]' if ':' in host else host}:{bound_port}"

    async def stop(self) -> None:
        """Stop as TGI does on SIGTERM: accept nothing more, finish what runs, then close.

        What has not ended after `drain_seconds` is cut. Calling it twice does nothing more.
        """
        if self._reopening is not None:
            self._reopening.cancel()
            self._reopening = None
        await self._close_listener()
        if self._runner is not None and self._runner.server is not None:
            self._runner.server.pre_shutdown()
            await self._drain()
        self.replica.engine.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._infer is not None:
            self._infer.close()
            self._infer = None

    def hurry(self) -> None:
        """Let a stop in progress wait no longer for answers: they are cut."""
        self._hurried.set()

    async def _drain(self) -> None:
        waits = {
            asyncio.ensure_future(self.replica.until_idle()),
            asyncio.ensure_future(self._hurried.wait()),
        }
        _, pending = await asyncio.wait(waits, timeout=self.settings.drain_seconds, return_when=asyncio.FIRST_COMPLETED)
        for wait in pending:
            wait.cancel()
        if self.replica.live:
            _log.warning("%d answers were cut", len(self.replica.live))

    async def _listen(self, host: str, port: int) -> None:
        if self._runner is None:
            raise RuntimeError("the application is set up before it listens")
        self._site = web.TCPSite(self._runner, host, port)
        await self._site.start()

    async def _close_listener(self) -> None:
        if self._site is not None:
            await self._site.stop()
            self._site = None

    async def _refuse(self, seconds: float) -> None:
        await self._close_listener()
        if self._reopening is not None:
            self._reopening.cancel()
        loop = asyncio.get_running_loop()
        self._reopening = loop.create_task(self._reopen(seconds), name="emulator-reopen")

    async def _reopen(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._listen(*self._address)

    def _application(self, infer: Infer) -> web.Application:
        native, chat = NativeRoutes(self.replica, infer), ChatRoutes(self.replica, infer)
        completions, control = CompletionRoutes(self.replica, infer), ControlRoutes(self.replica, self._refuse)
        health = HealthRoutes(self.replica)
        platforms = PlatformRoutes(self.replica, infer, native, chat, completions)
        application = web.Application(
            middlewares=[self._as_axum], client_max_size=self.replica.wire.payload_limit_bytes
        )
        application.on_response_prepare.append(_as_hyper)
        routes = [
            web.post("/", native.root),
            web.post("/generate", native.generate),
            web.post("/generate_stream", native.generate_stream),
            web.post("/tokenize", native.tokenize),
            web.post("/v1/chat/completions", chat.completions),
            web.post("/v1/completions", completions.completions),
            web.get("/_simulate/faults", control.faults),
            web.post("/_simulate/faults", control.order),
            web.get("/_simulate/state", control.state),
            web.get("/info", self._info),
            web.get("/metrics", self._metrics),
            *(web.get(path, health.health) for path in ("/", "/health", "/ping")),
            web.post("/invocations", platforms.invocations),
            web.post("/vertex", platforms.vertex),
        ]
        if self.replica.wire.tells_models:
            routes += [web.get("/v1/models", self._models), web.post("/chat_tokenize", chat.tokenize)]
        application.add_routes(routes)
        return application

    async def _info(self, request: web.Request) -> web.StreamResponse:
        del request
        return json_answer(info(self.settings.parameters, self.settings.model_id))

    async def _models(self, request: web.Request) -> web.StreamResponse:
        del request
        model = self.settings.model_id
        return json_answer(
            {"object": "list", "data": [{"id": model, "object": "model", "created": 0, "owned_by": model}]}
        )

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(text=self.replica.metrics.render())

    @web.middleware
    async def _as_axum(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer preflights, check the key, and turn every failure into what TGI answers."""
        if request.method == "OPTIONS":
            return web.Response(headers=_PREFLIGHT)
        try:
            if not self._may_pass(request):
                return web.Response(status=HTTPStatus.UNAUTHORIZED)
            with self._idle.around(request, self.replica.faults.plan.idle_close_seconds):
                response = await handler(request)
        except TgiError as error:
            response = error_answer(error)
        except web.HTTPException as error:
            if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}:
                raise
            allow = error.headers.get("Allow")
            response = web.Response(status=error.status, headers={"allow": allow} if allow else None)
        except ConnectionError as error:
            # A write found the caller gone before the loop told: the same as being cancelled for it.
            raise asyncio.CancelledError from error
        return response

    def _may_pass(self, request: web.Request) -> bool:
        key = self.settings.api_key
        is_health = request.path == "/" and request.method in {"GET", "HEAD"}
        if key is None or request.path not in _GUARDED or is_health:
            return True
        # TGI compares without regard to case.
        given = request.headers.get("authorization", "").lower()
        return hmac.compare_digest(given.encode(), f"bearer {key}".lower().encode())


async def _as_hyper(request: web.Request, response: web.StreamResponse) -> None:
    """Let the head look like TGI's: any origin, no name of a server, and no type of a body that is not there."""
    del request
    response.headers["access-control-allow-origin"] = "*"
    response.headers["vary"] = "origin, access-control-request-method, access-control-request-headers"
    response.headers.popall("Server", None)
    if response.content_length == 0 and response.content_type == "application/octet-stream":
        response.headers.popall("Content-Type", None)
