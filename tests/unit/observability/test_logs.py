"""The JSON lines of the daemon's log."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmshed.errors import ConfigError, EngineError, PromptError
from llmshed.observability.logs import configure_logging, decision_sink
from llmshed.observability.writer import LineWriter

CANARY = "canary-7f3a"


class Lines(list[bytes]):
    """What was written."""

    def last(self) -> Any:
        return json.loads(self[-1])


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Everything that is logged at debug level, with the root logger put back afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    written = Lines()
    configure_logging("debug", written.append)
    yield written
    root.handlers[:] = handlers
    root.setLevel(level)


log = logging.getLogger("llmshed.gateway.test")


def test_an_event_is_one_object_with_its_values_beside_it(lines: Lines) -> None:
    log.warning(
        "replica_down", extra={"replica": "gpu-0", "tries": 3, "seconds": 0.5, "names": ("a", "b"), "why": None}
    )
    line = lines.last()
    assert line.pop("ts").endswith("Z")
    assert line == {
        "level": "warning",
        "event": "replica_down",
        "logger": "llmshed.gateway.test",
        "replica": "gpu-0",
        "tries": 3,
        "seconds": 0.5,
        "names": ["a", "b"],
        "why": None,
    }


def test_arguments_of_our_own_messages_are_filled_in(lines: Lines) -> None:
    log.error("task %s crashed", "probe")
    assert lines.last()["event"] == "task probe crashed"


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "\x1b[31mred", "\x9b31m", "a\u2028b", "a\x85b", "\x00", "\ud800"])
def test_no_text_opens_a_second_line_or_moves_the_cursor(lines: Lines, text: str) -> None:
    log.info("seen %s", text, extra={"field": text, "nested": {text: [text]}})
    (line,) = lines
    assert line.endswith(b"}\n")
    assert line[:-1].decode("ascii").isprintable()


def test_an_object_is_told_by_its_type_alone(lines: Lines) -> None:
    log.info("seen", extra={"request": PromptError(CANARY), "raw": CANARY.encode()})
    assert (lines.last()["request"], lines.last()["raw"]) == ("<PromptError>", "<bytes>")


def test_a_crash_is_one_line_with_frames_and_without_what_a_client_wrote(lines: Lines) -> None:
    def handle(prompt: str) -> None:
        raise KeyError(prompt)

    try:
        handle(CANARY)
    except KeyError:
        log.exception("handler_crashed")
    (line,) = lines
    assert CANARY.encode() not in line
    assert lines.last()["error"] == "KeyError"
    assert lines.last()["frames"][-1].startswith("test_logs.py:")
    assert lines.last()["frames"][-1].endswith(" handle")
    assert "error_text" not in lines.last()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), EngineError("gpu-0 did not answer")])
def test_errors_of_the_machine_keep_their_text(lines: Lines, error: Exception) -> None:
    log.error("failed", exc_info=error)
    assert lines.last()["error_text"] == str(error)


def test_foreign_loggers_tell_their_template_and_nothing_that_was_put_into_it(lines: Lines) -> None:
    error = ValueError(CANARY)
    logging.getLogger("asyncio").error(f"Task exception was never retrieved\nfuture: <Task {error!r}>", exc_info=error)  # noqa: G004 - so does asyncio
    assert lines.last()["event"] == "Task exception was never retrieved"
    logging.getLogger("aiohttp.server").error("Error handling request from %s", CANARY)
    assert lines.last()["event"] == "Error handling request from %s"
    assert CANARY.encode() not in b"".join(lines)


def test_a_line_that_cannot_be_made_ends_nothing(lines: Lines) -> None:
    class Unprintable:
        def __str__(self) -> str:
            raise ValueError

    log.info("seen", extra={"values": {Unprintable(): 1}})
    assert lines.last()["event"] == "log_line_failed"


def test_only_the_level_that_was_asked_for_is_written(lines: Lines) -> None:
    configure_logging("warning", lines.append)
    log.info("quiet")
    log.warning("loud")
    assert [json.loads(line)["event"] for line in lines] == ["loud"]


def test_decisions_go_where_the_setting_says(tmp_path: Path) -> None:
    stderr = LineWriter(tmp_path / "stderr", lambda _: None)
    sink, own = decision_sink("stderr", stderr, lambda _: None)
    assert own is None
    sink(b"to stderr\n")
    sink, own = decision_sink("off", stderr, lambda _: None)
    assert own is None
    sink(b"nowhere\n")
    sink, own = decision_sink(str(tmp_path / "file"), stderr, lambda _: None)
    sink(b"to the file\n")
    assert own is not None
    own.close()
    stderr.close()
    assert (tmp_path / "file").read_bytes() == b"to the file\n"
    assert (tmp_path / "stderr").read_bytes() == b"to stderr\n"


def test_a_place_that_cannot_be_written_to_is_an_error_that_names_the_setting(tmp_path: Path) -> None:
    stderr = LineWriter(tmp_path / "stderr", lambda _: None)
    with pytest.raises(ConfigError, match=r"log\.decisions: cannot append to .*missing/file"):
        decision_sink(str(tmp_path / "missing" / "file"), stderr, lambda _: None)
    stderr.close()
