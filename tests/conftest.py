"""What all tests share: the command line as users call it, the reference data, and how hypothesis searches."""

import gc
import gzip
import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

import hypothesis
import pytest

REPOSITORY = Path(__file__).resolve().parent.parent

# CI searches the same cases each time, so that a red run can be repeated; a desk searches new ones.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")

# Under nohup, or behind a shell's `&`, both are ignored, and programs that tests start would inherit that; a handler
# that does nothing is not inherited.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run of the command line left behind."""

    exit_code: int
    stdout: str
    stderr: str

    def json(self) -> Any:
        """Return the one JSON object that `--json` printed."""
        import orjson  # noqa: PLC0415 - most runs print none

        return orjson.loads(self.stdout)


class Cli(Protocol):
    """Runs `llmshed ARGUMENTS` in this process."""

    def __call__(self, *arguments: str | Path, stdin: str | bytes = b"", env: Mapping[str, str] | None = None) -> Ran:
        """Return what the run printed and its exit code; `env` is added to the environment for this run only."""


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The console script's entry point, so that no test imports the commands by name."""
    (script,) = entry_points(group="console_scripts", name="llmshed")
    main: Callable[[], None] = script.load()
    for name in [name for name in os.environ if name.startswith("LLMSHED_")]:
        monkeypatch.delenv(name)

    def run(*arguments: str | Path, stdin: str | bytes = b"", env: Mapping[str, str] | None = None) -> Ran:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        out, err = _captured(), _captured()
        code: object = 0
        with monkeypatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["llmshed", *map(str, arguments)])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8"))
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            try:
                main()
            except SystemExit as left:
                code = left.code
        return Ran(code if isinstance(code, int) else int(code is not None), _text(out), _text(err))

    return run


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The reference data: $TEST_DATA, else ../shared/data beside the repository."""
    place = Path(os.environ.get("TEST_DATA") or REPOSITORY.parent / "shared" / "data")
    if not (place / "README.md").is_file():
        pytest.skip(f"no reference data in {place}: set TEST_DATA to its directory")
    return place


@pytest.fixture(scope="session")
def tokenizer_directory(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Finds the directory of a reference tokenizer; a packed tokenizer.json is unpacked once."""
    unpacked = tmp_path_factory.mktemp("tokenizers")

    def find(name: str) -> Path:
        packed = data_dir / "tokenizers" / name
        if (packed / "tokenizer.json").is_file():
            return packed
        target = unpacked / name
        if not target.is_dir():
            target.mkdir()
            for file in packed.iterdir():
                content = file.read_bytes()
                whole = gzip.decompress(content) if file.suffix == ".gz" else content
                (target / file.name.removesuffix(".gz")).write_bytes(whole)
        return target

    return find


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the repository."""
    return REPOSITORY


@pytest.fixture
def foreign_sockets() -> Iterator[None]:
    """Collect the sockets that client libraries leave to the collector, in the test that made them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make, and not so often: a fifth of all time went into looking."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def _captured() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape half characters in what a test logged: the processes of a run could not tell each other of them."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report
