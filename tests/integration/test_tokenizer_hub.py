"""Tokenizers from the Hugging Face hub: the real library against a hub on this machine, in a process of its own."""

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest

from llmshed.tokenizing.load import embedded

COMMIT = "0" * 40
Run = Callable[..., subprocess.CompletedProcess[str]]


class Hub:
    """Serves the files of one model as the hub's `resolve` route does."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.asked: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self.answer(with_body=False)

            def do_GET(self) -> None:
                self.answer(with_body=True)

            def answer(self, *, with_body: bool) -> None:
                model, _, rest = self.path.lstrip("/").partition("/resolve/")
                revision, _, name = rest.partition("/")
                hub.asked.append(f"{self.command} {revision} {name}")
                content = files.get(name)
                code = {"gated/model": "GatedRepo"}.get(model)
                if model == "org/model" and content is None:
                    code = "EntryNotFound"
                elif model not in {"org/model", "gated/model"}:
                    code = "RepoNotFound"
                if revision not in {"main", "v2", COMMIT}:
                    code = "RevisionNotFound"
                self.send_response(200 if code is None else 403 if code == "GatedRepo" else 404)
                if code is not None:
                    self.send_header("X-Error-Code", code)
                body = (content or b"") if code is None else b""
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("ETag", f'"{hashlib.sha256(body).hexdigest()}"')
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if with_body:
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Keep the test's output clean."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def hub() -> Iterator[Hub]:
    files = embedded()
    config = {**files.config, "chat_template": "from the hub: {{ messages[0].content }}"}
    serving = Hub({"tokenizer.json": files.tokenizer_json.encode(), "tokenizer_config.json": orjson.dumps(config)})
    yield serving
    serving.close()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def tokenize(
        spec: str, endpoint: str, *arguments: str, stdin: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        return subprocess.run(
            [Path(sys.executable).with_name("llmshed"), "tokenize", "--tokenizer", spec, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
            env=clean | {"HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "cache")} | env,
        )

    return tokenize


@pytest.mark.slow
def test_files_come_from_the_hub_and_then_from_its_cache(hub: Hub, run: Run) -> None:
    arguments = ("--chat", "-", "--json")
    chat = '[{"role": "user", "content": "Hello"}]'
    first = run("org/model", hub.url, *arguments, stdin=chat)
    assert first.returncode == 0, first.stderr
    found = orjson.loads(first.stdout)
    assert (found["tokenizer"], found["characters"]) == ("org/model", len("from the hub: Hello"))
    assert {entry.split()[-1] for entry in hub.asked} >= {
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
    }
    hub.asked.clear()
    again = run("org/model", hub.url, *arguments, stdin=chat, HF_HUB_OFFLINE="1")
    assert (again.stdout, hub.asked) == (first.stdout, [])
    gone = run("org/model", "http://127.0.0.1:9", *arguments, stdin=chat)
    assert gone.stdout == first.stdout


@pytest.mark.slow
def test_a_revision_can_be_named(hub: Hub, run: Run) -> None:
    assert run("org/model@v2", hub.url, "Hello", "--json").returncode == 0
    assert any(" v2 " in entry for entry in hub.asked)
    refused = run("org/model@v3", hub.url, "Hello")
    assert (refused.returncode, "no such revision" in refused.stderr) == (66, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "told"),
    [("org/other", "no such model on the hub"), ("gated/model", "accept its terms on the hub and set HF_TOKEN")],
)
def test_what_the_hub_does_not_give_is_told_with_what_to_do(hub: Hub, run: Run, model: str, told: str) -> None:
    ran = run(model, hub.url, "Hello")
    assert (ran.returncode, ran.stdout) == (66, "")
    assert told in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("offline", ["0", "1"])
def test_a_hub_out_of_reach_is_told_at_once_with_what_to_do(run: Run, offline: str) -> None:
    ran = run("org/model", "http://127.0.0.1:9", "Hello", HF_HUB_OFFLINE=offline)
    assert (ran.returncode, ran.stdout) == (66, "")
    assert ran.stderr == (
        "llmshed: no tokenizer at 'org/model': no such directory, the hub cannot be reached and its cache has no "
        "tokenizer.json; download the model's tokenizer files where there is a network and give their directory\n"
    )
