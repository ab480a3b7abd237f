"""A real nginx and a real haproxy before a listener, each writing down what it sent there."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fakes.engine import free_port

_NGINX = """\
daemon off; worker_processes 1; {user} pid {place}/nginx.pid; error_log {place}/error.log;
events {{ worker_connections 256; }}
http {{
  log_format sent '$upstream_addr $upstream_status';
  access_log {place}/sent.log sent;
  client_body_temp_path {place}/body; proxy_temp_path {place}/proxy; fastcgi_temp_path {place}/fastcgi;
  uwsgi_temp_path {place}/uwsgi; scgi_temp_path {place}/scgi;
  client_header_timeout 1s; client_body_timeout 1s; keepalive_timeout 1s; lingering_timeout 1s;
  upstream gateway {{ server 127.0.0.1:{behind}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://gateway; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_request_buffering off; proxy_buffering off; proxy_next_upstream off;
    }}
  }}
}}
"""
_HAPROXY = """\
global
  nbthread 1
  log stdout format raw local0
defaults
  mode http
  log global
  log-format "%s %ST"
  option http-no-delay
  http-reuse always
  retries 0
  timeout connect 2s
  timeout client 2s
  timeout server 5s
  timeout http-request 1s
  timeout http-keep-alive 1s
frontend door
  bind 127.0.0.1:{port}
  default_backend gateway
backend gateway
  server gateway 127.0.0.1:{behind}
"""


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running front: where it listens, and its log of one line a request, the server first."""

    port: int
    log: Path
    server: str

    def sent(self) -> int:
        """Return how many requests it has sent to the listener and been answered, so far."""
        return sum(line.startswith(self.server) for line in self.log.read_text().splitlines())


def nginx() -> str | None:
    """Return the path of nginx; None where it is not installed."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


def haproxy() -> str | None:
    """Return the path of haproxy, likewise."""
    return shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@asynccontextmanager
async def nginx_before(behind: int, place: Path) -> AsyncIterator[Proxy]:
    """Run nginx before a port: bodies pass unbuffered, connections to it are kept, nothing is sent twice."""
    port, log = free_port(), place / "sent.log"
    user = "user root;" if os.geteuid() == 0 else ""  # else its worker could not enter the place
    file = place / "nginx.conf"
    file.write_text(_NGINX.format(place=place, port=port, behind=behind, user=user))
    async with _running([str(nginx()), "-p", str(place), "-c", str(file)], port, place / "out.log"):
        yield Proxy(port, log, f"127.0.0.1:{behind} ")


@asynccontextmanager
async def haproxy_before(behind: int, place: Path) -> AsyncIterator[Proxy]:
    """Run haproxy before a port, likewise."""
    port, log = free_port(), place / "sent.log"
    file = place / "haproxy.cfg"
    file.write_text(_HAPROXY.format(port=port, behind=behind))
    async with _running([str(haproxy()), "-db", "-f", str(file)], port, log):
        yield Proxy(port, log, "gateway ")


@asynccontextmanager
async def _running(command: list[str], port: int, output: Path) -> AsyncIterator[None]:
    with output.open("wb") as out:
        process = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out)
        try:
            async with asyncio.timeout(30):
                while not await _listens(port):
                    assert process.returncode is None, f"it ended: see {output}"
                    await asyncio.sleep(0.02)
            yield
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
