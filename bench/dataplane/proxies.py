"""The proxies that stand beside llmshed, each with one process or thread at work, and the replica behind them all."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dataplane.building import HERE, built
from dataplane.processes import Program, free_port, listens, running, tool


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that runs, and the port on which it takes requests."""

    program: Program
    port: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a proxy is started.

    Args:
        folder: its files, and its log.
        core: the core that it has for itself.
        replica_port: where the replica listens.
    """

    folder: Path
    core: int
    replica_port: int


NGINX = """
daemon off; worker_processes 1; worker_rlimit_nofile 65536; pid {folder}/nginx.pid; error_log stderr warn;
events {{ worker_connections 16384; }}
http {{
  access_log off; keepalive_requests 1000000; client_body_buffer_size 512k; client_max_body_size 8m;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream replica {{ server 127.0.0.1:{replica}; keepalive 512; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://replica; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
      proxy_read_timeout 600s;
    }}
  }}
}}
"""


@contextmanager
def replica(folder: Path, core: int) -> Iterator[int]:
    """Run the replica, and give its port.

    Raises:
        NotRunningError: it cannot be compiled or started.
    """
    port = free_port()
    with running([built("replica"), str(port)], folder / "replica.log", core, lambda: listens(port)):
        yield port


@contextmanager
def nginx(place: Place) -> Iterator[Proxy]:
    """Run nginx without buffering, with connections kept on both sides.

    Raises:
        NotRunningError: it is not installed, or does not start.
    """
    port = free_port()
    file = place.folder / "nginx.conf"
    file.write_text(NGINX.format(folder=place.folder, port=port, replica=place.replica_port), encoding="utf-8")
    command = [tool("nginx", "nginx-light"), "-c", str(file), "-p", str(place.folder)]
    with running(command, place.folder / "nginx.log", place.core, lambda: listens(port)) as program:
        yield Proxy(program, port)


@contextmanager
def aiohttp_proxy(place: Place) -> Iterator[Proxy]:
    """Run a bare proxy of aiohttp.

    Raises:
        NotRunningError: it does not start.
    """
    port = free_port()
    command = [sys.executable, str(HERE / "aiohttp_proxy.py"), str(port), str(place.replica_port)]
    with running(command, place.folder / "aiohttp.log", place.core, lambda: listens(port)) as program:
        yield Proxy(program, port)
