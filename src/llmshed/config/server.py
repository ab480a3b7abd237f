"""Settings of the two listeners and of the daemon's life."""

from typing import Annotated, Literal

from pydantic import Field

from llmshed.config.addresses import AdminListen, Listen
from llmshed.config.base import ACCEPTED, FilePath, Seconds, Settings

Bytes = Annotated[int, Field(ge=1, le=2**40)]
DecisionSink = Annotated[
    str,
    Field(
        pattern=r"^(stderr|stdout|off|[^\x00]*[./][^\x00]*)$",
        json_schema_extra={ACCEPTED: "`stderr`, `stdout`, `off`, or the path of a file, with a `/` or `.` in it"},
    ),
]
"""A stream, nowhere, or a file; a path is told from a misspelt word by its `/` or `.`."""


class ServerSettings(Settings):
    """`[server]`: where the gateway listens and how it starts and stops."""

    listen: Listen = "127.0.0.1:8080"
    """Address and port of the data listener, `HOST:PORT`; port 0 takes a free one."""
    admin_listen: AdminListen = "127.0.0.1:9901"
    """Address of the admin listener, `HOST:PORT` or `unix:/PATH`; elsewhere than on loopback it needs a token.
    Without one it is asked by `localhost` or a loopback address only, so that no web page reaches it from a browser on
    this machine."""
    admin_token_file: FilePath | None = None
    """File that holds the digest line of the admin token (`sha256:HEX`, from `llmshed config key`)."""
    allow_keyless: bool = False
    """Serve without tenants' keys on an address other than loopback, and to web pages of elsewhere. Unless it is set, a
    listener without keys takes no POST with the `Origin` of another machine, so that no page sends work from a browser
    on this one."""
    max_body_bytes: Bytes = 2_000_000
    """Largest request body; TGI's own bound is 2,000,000 on every route."""
    max_headers: Annotated[int, Field(ge=8, le=10_000)] = 64
    """Most request headers."""
    max_header_bytes: Annotated[int, Field(ge=1024, le=2**20)] = 16_384
    """Most bytes of request headers together; one line may have half of it."""
    body_timeout_seconds: Seconds = 60.0
    """Longest time from the headers of a request to the last byte of its body."""
    keepalive_seconds: Seconds = 75.0
    """How long an idle client connection is kept."""
    write_stall_seconds: Seconds = 60.0
    """How long a client may take nothing of what waits to be written to it; then it counts as gone."""
    drain_delay_seconds: Annotated[float, Field(ge=0, le=3600)] = 5.0
    """After SIGTERM the listener stays open this long and answers new work 503, so that balancers notice."""
    drain_window_seconds: Seconds = 600.0
    """How long after SIGTERM running requests may take to end."""
    event_loop: Literal["uvloop", "asyncio"] = "uvloop"
    """Implementation of the event loop."""
    decision_history: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """How many decisions `/admin/decisions` remembers."""


class LogSettings(Settings):
    """`[log]`: what is written down; prompt text never is."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level of the JSON lines on standard error."""
    decisions: DecisionSink = "stderr"
    """Where the decision log goes: `stderr`, `stdout`, `off`, or the path of a file that is appended to."""
    hash_key_file: FilePath | None = None
    """File whose bytes key the logged hashes of bodies, sessions and prefixes; only its owner may read it. Unset: each
    start draws a key."""


class UpstreamSettings(Settings):
    """`[upstream]`: how replicas are asked."""

    connect_timeout_seconds: Seconds = 5.0
    """Longest time to connect to a replica."""
    pool_idle_seconds: Seconds = 4.0
    """How long an idle connection to a replica is kept; below the engine's own bound (uvicorn closes at 5 s)."""
    probe_interval_seconds: Seconds = 2.0
    """How often a replica that carries no traffic is asked for its health."""
    probe_timeout_seconds: Seconds = 10.0
    """Longest time a probe may take; a replica behind a long prefill step answers late."""
    signal_interval_seconds: Annotated[float, Field(ge=0, le=3600)] = 5.0
    """How often a replica's own metrics are read for signals; 0 reads them never."""
