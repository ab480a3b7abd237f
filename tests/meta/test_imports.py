"""The direction of imports, and what packages that decide or only hold values may not touch.

Read from the source by ast: what a module could do counts, not what a test happens to run.
"""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FLOORS = {
    "commands": 4,
    "gateway": 3,
    "drilling": 3,
    "loadtest": 3,
    "observability": 3,
    "prometheus": 3,
    "emulator": 3,
    "rendering": 3,
    "store": 3,
    "engines": 2,
    "tokenizing": 2,
    "admission": 1,
    "routing": 1,
    "simulation": 1,
    "whatif": 1,
    "workload": 1,
    "diagnosis": 1,
    "review": 1,
    "calibration": 1,
    "ladder": 1,
    "monitoring": 1,
    "profile": 0,
    "config": 0,
    "errors": 0,
    "clock": 0,
    "__version__": 0,
}
"""Each package and the floor that it stands on; it may import from its own floor and those below."""
PURE = {name for name, floor in FLOORS.items() if floor == 1}
VALUES = {"config", "profile", "errors"}
"""Parse and validate only: held to the same bans as the pure packages."""

BANNED_MODULES = {
    "aiohttp", "anyio", "asyncio", "concurrent", "ctypes", "fileinput", "glob", "http", "importlib", "io",
    "llmshed.clock", "locale", "logging", "mmap", "multiprocessing", "os", "pathlib", "platform", "random",
    "resource", "secrets", "select", "selectors", "shutil", "signal", "socket", "sqlite3", "ssl", "structlog",
    "subprocess", "sys", "tempfile", "threading", "time", "urllib.request", "uuid", "uvloop", "warnings",
    "zoneinfo",
}  # fmt: skip
BANNED_CALLS = {
    "__import__", "breakpoint", "compile", "eval", "exec", "exit", "globals", "hash", "id", "input", "open",
    "print", "quit",
}  # fmt: skip
"""`hash` and `id` differ from run to run."""
BANNED_METHODS = {
    "getenv", "now", "read_bytes", "read_text", "today", "urandom", "utcnow", "write_bytes", "write_text",
}  # fmt: skip

LIBRARY = sorted((ROOT / "src" / "llmshed").rglob("*.py"))
COMMANDS = sorted((ROOT / "commands").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the dotted name of a file, `llmshed.admission.ledger` or `llmshed.commands.serve`."""
    root = ROOT / "src" if path.is_relative_to(ROOT / "src") else ROOT
    parts = path.relative_to(root).with_suffix("").parts
    dotted = parts if parts[0] == "llmshed" else ("llmshed", *parts)
    return ".".join(dotted[:-1] if dotted[-1] == "__init__" else dotted)


def package_of(path: Path) -> str:
    """Return the package under llmshed that a file belongs to; empty for llmshed itself."""
    return module_name(path).partition(".")[2].partition(".")[0]


def imported(tree: ast.Module, module: str, *, is_package: bool, run_time: bool = False) -> Iterator[str]:
    """Yield the absolute name of everything imported; with `run_time`, what only type checkers see is left out."""
    for node in statements(tree, run_time=run_time):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".") + ([""] if is_package else [])
                base = ".".join([*parts[: -node.level], *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def statements(node: ast.AST, *, run_time: bool) -> Iterator[ast.AST]:
    """Yield all statements however deep, without a look into expressions, which are most of a tree."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, block, ()):
            yield inner
            if not (run_time and _only_types(inner)):
                yield from statements(inner, run_time=run_time)


def _only_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def imports_of(path: Path) -> set[str]:
    return set(imported(parsed(path), module_name(path), is_package=path.name == "__init__.py"))


def upward(package: str, names: set[str]) -> set[str]:
    """Return the imports that go up, or to a package that has no floor."""
    ours = {name for name in names if name.startswith("llmshed.")}
    floor = FLOORS[package]
    return {name for name in ours if FLOORS.get(name.split(".")[1], 99) > floor}


def impurities(source: str) -> set[str]:
    """Return what a module reads or does beyond its arguments."""
    tree = ast.parse(source)
    names = set(imported(tree, "llmshed.admission.sample", is_package=False, run_time=True))
    found = {name for name in names for banned in BANNED_MODULES if f"{name}.".startswith(f"{banned}.")}
    for node in ast.walk(tree):
        match node:
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                found.add("waits")
            case ast.Global() | ast.Nonlocal():
                found.add("shared state")
            case ast.Call(func=ast.Name(id=name)) if name in BANNED_CALLS:
                found.add(f"{name}()")
            case ast.Call(func=ast.Attribute(attr=name)) if name in BANNED_METHODS:
                found.add(f".{name}()")
            case ast.Attribute(attr="environ"):
                found.add(".environ")
            case _:
                pass
    return found


def starting(names: set[str], *packages: str) -> set[str]:
    """Return those names that are, or stand inside, one of these."""
    return {name for name in names if f"{name}.".startswith(tuple(f"{package}." for package in packages))}


def offenders(paths: list[Path], found: Callable[[Path], set[str]]) -> dict[str, set[str]]:
    """Return what was found, by file, where something was."""
    each = {str(path.relative_to(ROOT)): found(path) for path in paths}
    return {name: what for name, what in each.items() if what}


def test_every_package_has_a_floor() -> None:
    assert {package_of(path) for path in LIBRARY + COMMANDS} - {""} <= set(FLOORS), "give it one"


def test_imports_go_down_only() -> None:
    inside = [path for path in LIBRARY + COMMANDS if package_of(path) in FLOORS]
    assert offenders(inside, lambda path: upward(package_of(path), imports_of(path))) == {}


def test_nothing_but_the_entry_point_knows_the_command_line() -> None:
    assert offenders(LIBRARY + TESTS, lambda path: starting(imports_of(path), "llmshed.commands", "commands")) == {}


def test_commands_import_their_siblings_relatively() -> None:
    def absolute(path: Path) -> set[str]:
        nodes = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.ImportFrom) and node.level == 0]
        return starting({node.module or "" for node in nodes}, "llmshed.commands", "commands")

    assert offenders(COMMANDS, absolute) == {}


def test_what_decides_or_holds_values_touches_nothing_outside_its_arguments() -> None:
    held = [path for path in LIBRARY if package_of(path) in PURE | VALUES]
    assert len(held) > 100
    assert offenders(held, lambda path: impurities(path.read_text("utf-8"))) == {}


def test_only_the_clock_module_reads_a_clock() -> None:
    others = [path for path in LIBRARY if package_of(path) != "clock"]
    assert offenders(others, lambda path: imports_of(path) & CLOCK_READS) == {}


WALL_READERS = {
    "gateway/door/door.py",  # when a request came, for its decision line
    "gateway/admin/ladders.py",  # which remembered decisions are of the last minutes, for a dry run
    "gateway/ladders/book.py",  # when things were done, and until when a rung is held while no process runs
    "gateway/daemon/assembly.py",  # since when a configuration is in force, for its metric
    "tokenizing/renderers.py",  # the date that a chat template is shown
    "emulator/replica.py",  # `created` of OpenAI's answers
}


def test_the_wall_clock_is_told_and_decides_nothing() -> None:
    readers = [path for path in LIBRARY if reads_the_wall(path.read_text("utf-8"))]
    assert {path.relative_to(ROOT / "src" / "llmshed").as_posix() for path in readers} == WALL_READERS


def reads_the_wall(source: str) -> bool:
    """Say whether a module asks for the time of day, of our clock or of the library."""
    attributes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)]
    return any(node.attr in {"wall", "utcnow", "today"} or ast.unparse(node) == "datetime.now" for node in attributes)


CLOCK_READS = {f"time.{name}" for name in ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns")}


class TestTheChecksBite:
    """Each ban is shown a planted fault."""

    @pytest.mark.parametrize("source", ["self.clock.wall()", "datetime.now(tz=UTC)", "date.today()"])
    def test_a_look_at_the_wall_clock_is_seen(self, source: str) -> None:
        assert reads_the_wall(source)
        assert not reads_the_wall("self.clock.now()")

    @pytest.mark.parametrize(
        ("package", "source"),
        [
            ("admission", "import llmshed.gateway.driver"),
            ("admission", "from llmshed.engines.base import Engine"),
            ("admission", "from llmshed import observability"),
            ("engines", "from ..gateway import relay"),
            ("config", "from llmshed.admission.lanes import Lane"),
            ("gateway", "from llmshed.commands import app"),
            ("gateway", "def late():\n    from llmshed import commands"),
            ("gateway", "from llmshed.unheard_of import x"),
        ],
    )
    def test_an_import_that_goes_up_is_found(self, package: str, source: str) -> None:
        names = set(imported(ast.parse(source), f"llmshed.{package}.sample", is_package=False))
        assert upward(package, names)

    @pytest.mark.parametrize(
        ("package", "source"),
        [
            ("gateway", "from llmshed.admission.events import Arrived"),
            ("admission", "from llmshed.routing.choose import choose"),
            ("admission", "from .events import Arrived"),
            ("admission", "from llmshed.config.settings import Config"),
        ],
    )
    def test_an_import_that_goes_down_or_sideways_is_not(self, package: str, source: str) -> None:
        names = set(imported(ast.parse(source), f"llmshed.{package}.sample", is_package=False))
        assert not upward(package, names)

    @pytest.mark.parametrize(
        "source",
        [
            "import time",
            "from time import monotonic",
            "def f():\n    import time",
            "import asyncio",
            "import os.path",
            "import random",
            "from random import Random",
            "import logging",
            "from pathlib import Path",
            "from llmshed.clock import SystemClock",
            "from llmshed import clock",
            "open('x')",
            "print('x')",
            "input()",
            "__import__('time')",
            "async def f(): ...",
            "import datetime\ndatetime.datetime.now()",
            "from datetime import date\ndate.today()",
            "def f(path): return path.read_text()",
            "def f(module): return module.environ['X']",
            "hash('x')",
            "def f():\n    global x\n    x = 1",
        ],
    )
    def test_an_impurity_is_found(self, source: str) -> None:
        assert impurities(source)

    @pytest.mark.parametrize(
        "source",
        [
            "from collections import deque",
            "def handle(event, now): return now",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from random import Random",
            "import datetime\nx: datetime.date",
            "from llmshed.config.settings import Config",
        ],
    )
    def test_what_is_pure_is_not(self, source: str) -> None:
        assert not impurities(source)
