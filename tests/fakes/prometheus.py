"""A real Prometheus on a free port, whose store a test fills or which scrapes what a test runs."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from socket import socket
from urllib.error import URLError
from urllib.request import urlopen

import pytest

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None, reason="prometheus (package) is absent"
)
_MOST_LOOKS = 600
"""For its readiness, 50 ms apart."""


def free_port() -> int:
    """Return a port that nobody listens on."""
    with closing(socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def fill(folder: Path, lines: Sequence[str]) -> None:
    """Put samples into the store of a Prometheus that does not run: OpenMetrics lines with their times in seconds."""
    source = folder / "samples.txt"
    source.write_text("\n".join((*lines, "# EOF", "")))
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(source), str(folder / "data")]
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def running(
    folder: Path, targets: Sequence[str] = (), interval_seconds: float = 1.0, prefix: str = "/"
) -> Iterator[str]:
    """Run one that keeps its store in `folder` and scrapes `targets` (HOST:PORT); yields its address."""
    config = {
        "global": {"scrape_interval": f"{interval_seconds * 1000:.0f}ms", "scrape_timeout": "500ms"},
        "scrape_configs": [{"job_name": "llmshed", "static_configs": [{"targets": list(targets)}]}],
    }
    file = folder / "prometheus.yml"
    file.write_text(json.dumps(config))
    port = free_port()
    address = f"http://127.0.0.1:{port}{prefix.rstrip('/')}"
    log = (folder / "prometheus.log").open("w")
    with log, subprocess.Popen(
        [
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            f"--web.route-prefix={prefix}",
            "--storage.tsdb.retention.time=100y",
            "--log.level=warn",
        ],
        stdout=log,
        stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            _await_ready(address, process)
            yield address
        finally:
            process.terminate()
            process.wait(30)


def _await_ready(address: str, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(_MOST_LOOKS):
        assert process.poll() is None, "Prometheus ended while it started"
        try:
            with urlopen(f"{address}/-/ready", timeout=1) as answer:  # noqa: S310 - our own http: address
                if answer.status == 200:
                    return
        except (URLError, OSError):
            time.sleep(0.05)
    raise AssertionError("Prometheus did not start")
