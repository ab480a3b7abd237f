"""The rig of the data plane's bench: its configuration, its programs, its clients and its replica."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from dataplane.asking import KEY, Chat, long_text, short_text, stream, unlike
from dataplane.driving import Clients, Driver
from dataplane.gateway import ONE_SEAT_KEY, Shape, gateway, tokenizer, write_config
from dataplane.processes import NotRunningError, Program, free_port, is_alive, listens, running, tool, two_cores
from dataplane.proxies import Place, aiohttp_proxy, replica
from tokenizers import Tokenizer

from fakes.quietest import TRIES
from llmshed.config.loading import load_config
from llmshed.tokenizing.load import find

WARM_SECONDS, SECONDS = 0.2, 0.4
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="cc is not installed")
CHILD = "import subprocess, sys, time; subprocess.Popen(['sleep', '60']); print('up', flush=True); time.sleep(60)"


@pytest.fixture(scope="module")
def core() -> int:
    return two_cores()[0]


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def place(cache: None, tmp_path: Path, core: int) -> Iterator[Place]:
    del cache
    with replica(tmp_path, core) as port:
        yield Place(tmp_path, core, port)


def test_the_configuration_is_one_that_the_gateway_takes(tmp_path: Path) -> None:
    file = write_config(Place(tmp_path, 0, 3000), Shape(sequences=7, queue=3, further_ports=(3001,)), 8001, 8002)
    config = load_config(file.read_text("utf-8"), str(file), {}, {}).config
    (pool,) = config.pools
    assert [str(replica.url) for replica in pool.replicas] == ["http://127.0.0.1:3000", "http://127.0.0.1:3001"]
    assert config.lanes.interactive.queue_requests == 3
    assert {tenant.name: tenant.max_concurrent_requests for tenant in config.tenants} == {"bench": None, "one-seat": 1}


def test_a_request_has_the_length_that_it_says_and_its_key() -> None:
    head, _, body = Chat(short_text()).message.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}\r\n".encode() in head + b"\r\n"
    assert f"Authorization: Bearer {KEY}".encode() in head
    assert Chat("x", key=ONE_SEAT_KEY).message.count(ONE_SEAT_KEY.encode()) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("data_dir")
def test_texts_have_the_tokens_that_are_told() -> None:
    counted = Tokenizer.from_str(find(tokenizer()).tokenizer_json)
    assert len(counted.encode(short_text()).ids) == pytest.approx(400, rel=0.1)
    assert len(counted.encode(long_text()).ids) == pytest.approx(14_000, rel=0.1)


def test_a_tool_that_is_not_there_is_named_with_its_package() -> None:
    with pytest.raises(NotRunningError, match="no-such-tool is not installed; on Debian: apt install its-package"):
        tool("no-such-tool", "its-package")


@pytest.mark.slow
def test_a_program_ends_with_what_it_started_and_its_cpu_time_is_the_sum(tmp_path: Path, core: int) -> None:
    log = tmp_path / "log"
    with running([sys.executable, "-c", CHILD], log, core, lambda: "up" in log.read_text()) as program:
        ids = program.ids
        assert len(ids) == 2
        assert os.sched_getaffinity(ids[1]) == {core}
        assert 0.001 < program.cpu_seconds < 10.0
        assert program.pss_bytes > 1_000_000
    assert not any(map(is_alive, ids))


@pytest.mark.slow
def test_a_program_that_does_not_start_says_why(tmp_path: Path, core: int) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no such wheel')"]
    with pytest.raises(NotRunningError, match="no such wheel"), running(command, tmp_path / "log", core, lambda: False):
        pass


@needs_cc
@pytest.mark.slow
def test_the_replica_keeps_its_pace_and_its_clients_see_all_of_it(place: Place, core: int) -> None:
    driver = Driver(place.folder, core)

    def keeps_pace(program: Program) -> bool:
        (streams,) = driver.drive(place.replica_port, program, WARM_SECONDS, SECONDS, Clients(stream(100, 10), 5))
        (whole,) = driver.drive(place.replica_port, program, WARM_SECONDS, SECONDS, Clients(Chat(short_text()), 2))
        (paced,) = driver.drive(
            place.replica_port, program, WARM_SECONDS, SECONDS, Clients(unlike(Chat("x")), 100, open_loop=True)
        )
        assert streams.failures == 0
        assert set(whole.answers) == {200}
        asked, steps = 100 * paced.seconds, 5 * 100 * streams.seconds
        return (
            whole.requests > 100
            and streams.events == pytest.approx(steps, rel=0.2)
            and paced.answers[200] == pytest.approx(asked, abs=5)
        )

    with Sleeper(place) as program:
        assert any(keeps_pace(program) for _ in range(TRIES))
        short, beside = driver.drive(
            place.replica_port, program, 0.1, SECONDS, Clients(stream(3, 10), 1), Clients(stream(100, 1000), 1)
        )
    assert short.events == pytest.approx(3 * short.answers[200], abs=3)
    assert (beside.requests, beside.running) == (0, 1)


@needs_cc
@pytest.mark.slow
def test_the_gateway_and_the_bare_proxy_serve_what_the_bench_asks(
    place: Place, core: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_DATA", str(place.folder))  # nothing is there, so the small tokenizer is taken
    driver = Driver(place.folder, core)
    asked = (Clients(stream(20, 5), 4), Clients(Chat(short_text()), 2))
    with aiohttp_proxy(place) as bare:
        for seen in driver.drive(bare.port, bare.program, WARM_SECONDS, SECONDS, *asked):
            assert (set(seen.answers), seen.cut) == ({200}, 0)
    with gateway(place, Shape(sequences=4, queue=0)) as house:
        for seen in driver.drive(house.port, house.program, WARM_SECONDS, SECONDS, asked[1]):
            assert (set(seen.answers), seen.cut) == ({200}, 0)
        seats = Clients(stream(1000, 100), 4)
        _, refused = driver.drive(house.port, house.program, WARM_SECONDS, SECONDS, seats, asked[1])
        assert refused.answers.get(429, 0) > 10
        one_seat = Chat(short_text(), 1000, streamed=True, key=ONE_SEAT_KEY)
        storm = Clients(Chat(short_text(), key=ONE_SEAT_KEY), 2)
        _, unread = driver.drive(house.port, house.program, WARM_SECONDS, SECONDS, Clients(one_seat, 1), storm)
        assert unread.answers.get(429, 0) > 10


class Sleeper:
    """A program whose CPU time is looked at; the replica itself is another."""

    def __init__(self, place: Place) -> None:
        self._log = place.folder / "sleeper.log"

    def __enter__(self) -> Program:
        self._process = subprocess.Popen(["sleep", "60"])
        return Program(self._process, self._log)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def test_a_free_port_is_one_that_nobody_listens_on() -> None:
    port = free_port()
    assert not listens(port)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        assert listens(port)
