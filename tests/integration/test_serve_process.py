"""`llmshed serve` as a process: its start, its signals, its notices to systemd and its exit."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fakes.engine import free_port

STREAM = {"inputs": "Hello", "parameters": {"max_new_tokens": 1000}}


@dataclass(slots=True)
class Process:
    """A running gateway."""

    popen: subprocess.Popen[bytes]
    data: str
    admin: str
    errors: Path

    def ask(self, url: str, body: object = None) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        content = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, content, headers), timeout=20) as answer:  # noqa: S310 - our own
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def told(self) -> str:
        return self.errors.read_text()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.told().splitlines() if line.startswith("{")]

    def send(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def wait(self) -> int:
        return self.popen.wait(20)


def eventually(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; the other side is a process of its own."""
    give_up = time.monotonic() + 30  # noqa: TID251 - the process under test has no clock to share
    while not condition():
        assert time.monotonic() < give_up, "it did not happen within 30 s"  # noqa: TID251 - as above
        time.sleep(0.02)


@contextmanager
def serving(
    directory: Path, toml: str = "", *arguments: str, env: dict[str, str] | None = None, ready: bool = True
) -> Iterator[Process]:
    data, admin = free_port(), free_port()
    config = directory / "llmshed.toml"
    config.write_text(
        f'{toml}\n[server]\nlisten = "127.0.0.1:{data}"\nadmin_listen = "127.0.0.1:{admin}"\n'
        "drain_delay_seconds = 0.3\ndrain_window_seconds = 30\n"
        '[[pools]]\n[[pools.replicas]]\nname = "sim"\nurl = "simulated:"\n'
    )
    script = Path(sys.executable).with_name("llmshed")
    command = [str(script) if script.exists() else str(shutil.which("llmshed")), "serve", "--config", str(config)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LLMSHED_", "NOTIFY_"))}
    errors = directory / "stderr"
    with errors.open("wb") as stderr:
        popen = subprocess.Popen([*command, *arguments], stderr=stderr, env=clean | (env or {}), cwd=directory)
        process = Process(popen, f"http://127.0.0.1:{data}", f"http://127.0.0.1:{admin}", errors)
        try:
            if ready:
                eventually(lambda: popen.poll() is not None or '"event": "ready"' in process.told())
                assert popen.poll() is None, process.told()
            yield process
        finally:
            if popen.poll() is None:
                popen.kill()
            popen.wait()


def open_stream(process: Process, body: object = STREAM) -> socket.socket:
    """Begin a stream and return its connection once the first event has come."""
    host, port = process.data.removeprefix("http://").split(":")
    stream = socket.create_connection((host, int(port)), 20)
    content = json.dumps(body).encode()
    lines = ("POST /generate_stream HTTP/1.1", "Host: x", "Content-Type: application/json")
    head = "\r\n".join((*lines, f"Content-Length: {len(content)}", ""))
    stream.sendall(head.encode() + b"\r\n" + content)
    got = b""
    while b"data:" not in got:
        got += stream.recv(65_536)
    return stream


def rest_of(stream: socket.socket) -> bytes:
    got = b""
    while part := stream.recv(65_536):
        got += part
        if got.endswith(b"0\r\n\r\n"):
            break
    stream.close()
    return got


pytestmark = pytest.mark.slow


def test_the_start_says_what_to_try_and_the_commands_work(tmp_path: Path) -> None:
    with serving(tmp_path) as process:
        told = process.told()
        assert process.data in told
        assert process.admin in told
        assert "numbers of profile simulated" in told
        commands = [line.strip() for line in told.splitlines() if line.startswith("  ")]
        assert len(commands) == 3
        for command in commands:
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            as_typed = ["sh", "-c", command]
            ran = subprocess.run(
                as_typed, capture_output=True, check=False, env=os.environ | {"PATH": path}, timeout=30
            )
            assert ran.returncode == 0, ran.stderr
            assert ran.stdout
        process.send(signal.SIGTERM)
        assert process.wait() == 0


def test_sigterm_refuses_new_work_lets_streams_end_and_exits_with_0(tmp_path: Path) -> None:
    with serving(tmp_path) as process:
        stream = open_stream(process, {"inputs": "Hello", "parameters": {"max_new_tokens": 60}})
        process.send(signal.SIGTERM)
        eventually(lambda: process.ask(f"{process.admin}/readyz")[0] == 503)
        status, body = process.ask(f"{process.data}/generate", STREAM)
        assert (status, json.loads(body)["code"]) == (503, "draining")
        assert process.ask(f"{process.data}/health")[0] == 503
        assert process.ask(f"{process.admin}/livez")[0] == 200
        got = rest_of(stream)
        assert b'"generated_text":"' in got
        assert b"error" not in got
        assert process.wait() == 0


def test_a_second_signal_tells_the_streams_and_exits_within_two_seconds(tmp_path: Path) -> None:
    with serving(tmp_path) as process:
        stream = open_stream(process)
        process.send(signal.SIGTERM)
        eventually(lambda: process.ask(f"{process.admin}/readyz")[0] == 503)
        process.send(signal.SIGINT)
        assert process.popen.wait(2) == 0
        got = rest_of(stream)
        assert b'data: {"error":"' in got
        assert b"shut" in got
        line = next(event for event in process.events() if event.get("route") == "/generate_stream")
        assert (line["ending"], line["termination"]) == ("failed", "GD")


def test_sighup_takes_a_valid_file_and_keeps_the_old_one_otherwise(tmp_path: Path) -> None:
    with serving(tmp_path) as process:
        config = tmp_path / "llmshed.toml"
        valid = config.read_text()
        config.write_text("[lanes.interactive]\ndefault_output_tokens = 3\n" + valid)
        process.send(signal.SIGHUP)
        eventually(lambda: '"event": "config_reloaded"' in process.told())
        _, body = process.ask(f"{process.data}/generate", {"inputs": "Hello", "parameters": {"details": True}})
        assert json.loads(body)["details"]["generated_tokens"] <= 3
        config.write_text("nonsense")
        process.send(signal.SIGHUP)
        eventually(lambda: '"event": "config_refused"' in process.told())
        assert b"llmshed_config_last_reload_successful 0.0" in process.ask(f"{process.admin}/metrics")[1]
        assert process.ask(f"{process.data}/health")[0] == 200
        process.send(signal.SIGUSR1)
        eventually(lambda: '"event": "state"' in process.told())


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_systemd_is_told_of_every_step(tmp_path: Path, loop: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(20)
        heard: list[str] = []

        def hear(wanted: str) -> None:
            while not any(wanted in line for line in heard):
                heard.append(systemd.recv(4096).decode())

        env = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "20000000"}
        with serving(tmp_path, "", "--set", f"server.event_loop={loop}", env=env) as process:
            hear("READY=1")
            hear("WATCHDOG=1")
            heard.clear()
            process.send(signal.SIGHUP)
            hear("RELOADING=1\nMONOTONIC_USEC=")
            hear("READY=1")
            process.send(signal.SIGTERM)
            hear("STOPPING=1")
            hear("EXTEND_TIMEOUT_USEC=")
            assert process.wait() == 0


def test_a_port_in_use_is_a_clear_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serving(tmp_path, "", "--listen", f"127.0.0.1:{port}", ready=False) as process:
            assert process.wait() == 69
            assert process.told().strip() == (
                f"llmshed: 127.0.0.1:{port}: cannot listen: the address is in use; stop what listens there or choose"
                " another"
            )


def test_decisions_may_go_to_a_file_that_logrotate_moves(tmp_path: Path) -> None:
    with serving(tmp_path, f'[log]\ndecisions = "{tmp_path}/decisions.jsonl"') as process:
        process.ask(f"{process.data}/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": 1}})
        log = tmp_path / "decisions.jsonl"
        eventually(lambda: log.exists() and log.read_text().count("\n") == 1)
        log.rename(tmp_path / "decisions.jsonl.1")
        process.send(signal.SIGHUP)
        eventually(log.exists)
        process.ask(f"{process.data}/generate", {"inputs": "Hello", "parameters": {"max_new_tokens": 1}})
        eventually(lambda: log.read_text().count("\n") == 1)
        assert '"schema":"llmshed.decision/1"' not in process.told()
