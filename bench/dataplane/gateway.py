"""llmshed as it is measured: the whole way of admission, with nothing that binds unless a measure wants it to."""

import hashlib
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dataplane.asking import KEY, MODEL
from dataplane.processes import Program, free_port, running
from dataplane.proxies import Place
from goodput_cases import data_folder

ONE_SEAT_KEY = "sk-one-seat"
"""Key of a tenant that may have one request at a time."""

_PROFILE = """
schema = "llmshed.profile/1"
name = "bench"
version = "1"

[budget]
gross_ceiling_tokens = 50_000_000
hard_cap_sequences = {sequences}
basis = "declared"

[prefill]
safe_tokens_per_second = 100_000_000
inflight_tokens = 50_000_000

[decode]
seconds_per_token = 0.04

[bulk]
reserved_max_ratio = 1
prefill_cap_ratio = 1
"""
_CONFIG = """
[server]
listen = "127.0.0.1:{port}"
admin_listen = "127.0.0.1:{admin_port}"

[log]
decisions = "{folder}/decisions.jsonl"

[lanes.interactive]
queue_requests = {queue}

[[tenants]]
name = "bench"
keys_file = "bench.keys"

[[tenants]]
name = "one-seat"
keys_file = "one-seat.keys"
max_concurrent_requests = 1

[[pools]]
model = "{model}"
engine_version = "3.3.5"
tokenizer = "{tokenizer}"
profile = "profile.toml"
on_count_mismatch = "warn"
replicas = [
{replicas}
]
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """What differs between the gateways of several measures.

    Args:
        sequences: hard cap of each replica.
        queue: most requests that wait.
        further_ports: where more replicas listen than the one that everybody has.
    """

    sequences: int = 100_000
    queue: int = 10_000
    further_ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway that runs, and the ports of its two listeners; it can be driven as any proxy is."""

    program: Program
    port: int
    admin_port: int


def tokenizer() -> str:
    """Return a real tokenizer of 151,669 entries where the reference data is, else the package's own small one."""
    directory = data_folder() / "tokenizers" / "qwen3"
    return str(directory) if (directory / "tokenizer.json").is_file() else "embedded"


@contextmanager
def gateway(place: Place, shape: Shape = Shape()) -> Iterator[Gateway]:
    """Run llmshed.

    Raises:
        NotRunningError: it does not start.
    """
    port, admin_port = free_port(), free_port()
    config = write_config(place, shape, port, admin_port)
    command = [str(Path(sys.executable).with_name("llmshed")), "serve", "--config", str(config)]
    with running(command, place.folder / "log", place.core, lambda: is_ready(admin_port)) as program:
        yield Gateway(program, port, admin_port)


def write_config(place: Place, shape: Shape, port: int, admin_port: int) -> Path:
    """Write a configuration with its profile and its files of keys, and return its path."""
    folder = place.folder
    for name, key in {"bench": KEY, "one-seat": ONE_SEAT_KEY}.items():
        file = folder / f"{name}.keys"
        file.write_text(f"sha256:{hashlib.sha256(key.encode()).hexdigest()}\n", encoding="ascii")
        file.chmod(0o600)
    (folder / "profile.toml").write_text(_PROFILE.format(sequences=shape.sequences), encoding="utf-8")
    ports = (place.replica_port, *shape.further_ports)
    text = _CONFIG.format(
        port=port,
        admin_port=admin_port,
        folder=folder,
        queue=shape.queue,
        model=MODEL,
        tokenizer=tokenizer(),
        replicas="\n".join(f'  {{ name = "r{one}", url = "http://127.0.0.1:{one}" }},' for one in ports),
    )
    config = folder / "llmshed.toml"
    config.write_text(text, encoding="utf-8")
    return config


def is_ready(admin_port: int) -> bool:
    """Say whether a gateway takes requests."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
