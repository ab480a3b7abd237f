"""A real Prometheus asked through the library, and servers that are none, slow, closed or short of something."""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket

import pytest

from fakes.prometheus import fill, free_port, needs_prometheus, running
from llmshed.errors import ExitCode
from llmshed.prometheus.client import Access, Prometheus
from llmshed.prometheus.errors import PrometheusError, Trouble

BEGAN = 1_700_000_000


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    lines = ["# TYPE requests counter"]
    lines += [f'requests_total{{lane="bulk"}} {3 * second} {BEGAN + second}' for second in range(0, 600, 15)]
    lines += ["# TYPE share gauge"]
    lines += [f"share {'NaN' if second < 300 else '0.5'} {BEGAN + second}" for second in range(0, 600, 15)]
    fill(folder, lines)
    with running(folder, prefix="/behind/a/prefix") as url:
        yield url


@needs_prometheus
@pytest.mark.slow
def test_a_range_and_an_instant_are_read(filled: str) -> None:
    asked = Prometheus(filled, Access(), 5.0)
    (rate,) = asked.over("sum by (lane) (rate(requests_total[1m]))", BEGAN + 120, BEGAN + 480, 60)
    assert rate.labels == {"lane": "bulk"}
    assert rate.times == tuple(float(BEGAN + second) for second in range(120, 481, 60))
    assert rate.values == pytest.approx([3.0] * 7)
    (now,) = asked.at("share", BEGAN + 400)
    assert now.values == (0.5,)
    (then,) = asked.at("share", BEGAN + 100)
    assert math.isnan(then.values[0])
    assert asked.at("nobody_exports_this", BEGAN) == ()


@needs_prometheus
@pytest.mark.slow
def test_a_query_that_cannot_be_evaluated_is_told_in_its_words(filled: str) -> None:
    with pytest.raises(PrometheusError, match="parse error") as caught:
        Prometheus(filled, Access(), 5.0).at("rate(", BEGAN)
    assert caught.value.trouble is Trouble.BAD_QUERY
    assert caught.value.exit_code is ExitCode.BUG


@needs_prometheus
@pytest.mark.slow
def test_without_its_prefix_it_is_not_taken_for_a_prometheus(filled: str) -> None:
    with pytest.raises(PrometheusError, match="need a path") as caught:
        Prometheus(filled.replace("/behind/a/prefix", ""), Access(), 5.0).at("up", BEGAN)
    assert caught.value.trouble is Trouble.NOT_PROMETHEUS


def test_where_nobody_listens_it_says_so() -> None:
    with pytest.raises(PrometheusError, match="Connection refused") as caught:
        Prometheus(f"http://127.0.0.1:{free_port()}", Access(), 5.0).at("up", BEGAN)
    assert caught.value.trouble is Trouble.UNREACHABLE


def test_a_connection_that_breaks_is_tried_once() -> None:
    with closing(socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        accepted: list[None] = []

        def breaks() -> None:
            with suppress(OSError):
                while True:
                    connection = listener.accept()[0]
                    accepted.append(None)  # before the close, which lets the asker go on
                    connection.close()

        threading.Thread(target=breaks, daemon=True).start()
        with pytest.raises(PrometheusError) as caught:
            Prometheus(f"http://127.0.0.1:{listener.getsockname()[1]}", Access(), 5.0).at("up", BEGAN)
    assert caught.value.trouble is Trouble.UNREACHABLE
    assert len(accepted) == 1


@contextmanager
def answering(write: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Run a server that answers every POST by `write`; yields its address and the headers that it was sent."""
    heard: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append({name.lower(): value for name, value in self.headers.items()})
            write(self)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", heard
    finally:
        server.shutdown()
        server.server_close()


def page(status: int, body: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return write


@pytest.mark.parametrize(
    ("status", "body", "trouble", "told"),
    [
        (401, b"Unauthorized", Trouble.FORBIDDEN, "Unauthorized"),
        (403, b"no", Trouble.FORBIDDEN, "read from a file"),
        (404, b"404 page not found", Trouble.NOT_PROMETHEUS, "status 404"),
        (200, b"<html>hello</html>", Trouble.NOT_PROMETHEUS, "no answer of its query interface"),
        (200, b'{"status":"success"}', Trouble.NOT_PROMETHEUS, "no answer of its query interface"),
        (200, b'{"data":{"result":[{"metric":{}}]}}', Trouble.NOT_PROMETHEUS, "no answer"),
        (302, b"", Trouble.NOT_PROMETHEUS, "a redirect"),
        (
            503,
            b'{"status":"error","errorType":"unavailable","error":"store \\"a\\" is missing"}',
            Trouble.UNABLE,
            "store",
        ),
        (429, b"slow down", Trouble.UNABLE, "slow down"),
        (422, b'{"status":"error","errorType":"execution","error":"too many samples"}', Trouble.BAD_QUERY, "samples"),
    ],
)
def test_what_is_no_answer_is_told_with_whose_turn_it_is(status: int, body: bytes, trouble: Trouble, told: str) -> None:
    headers = {"location": "/elsewhere"} if status == 302 else {}
    with answering(page(status, body, **headers)) as (url, heard):
        with pytest.raises(PrometheusError, match=told) as caught:
            Prometheus(url, Access(), 5.0).at("up", BEGAN)
        assert caught.value.trouble is trouble
        assert len(heard) == 1, "asked once"


def test_a_server_that_says_nothing_is_left_after_its_time() -> None:
    with answering(lambda _: time.sleep(3)) as (url, heard):
        with pytest.raises(PrometheusError, match=r"within 0\.3 s") as caught:
            Prometheus(url, Access(), 0.3).at("up", BEGAN)
        assert caught.value.trouble is Trouble.TIMED_OUT
        assert len(heard) == 1


EMPTY = page(200, b'{"status":"success","data":{"resultType":"vector","result":[]}}')


@pytest.mark.parametrize(
    ("access", "told"),
    [
        (Access(bearer="secret"), "Bearer secret"),
        (Access(basic=("who", "what")), "Basic d2hvOndoYXQ="),
        (Access(), None),
    ],
)
def test_credentials_go_as_they_were_given_whatever_a_netrc_says(
    access: Access, told: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login other password other\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    with answering(EMPTY) as (url, heard):
        assert Prometheus(url, access, 5.0).at("up", BEGAN) == ()
    assert heard[0].get("authorization") == told
