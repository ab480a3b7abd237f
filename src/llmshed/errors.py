"""The few errors that cross a package border, each with the exit code that a command ends with."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Process exit codes, after sysexits(3) where it has a word (docs/cli.md lists them from here)."""

    OK = 0
    BULK = 10
    OVERFLOW = 11
    NO_PROPOSAL = 12
    USAGE = 64
    BAD_DATA = 65
    NO_INPUT = 66
    UNAVAILABLE = 69
    BUG = 70
    IO = 74
    TEMPORARY = 75
    NO_PERMISSION = 77
    CONFIG = 78
    INTERRUPTED = 130


class MonitoringCode(IntEnum):
    """Exit codes of `diagnose`, those of monitoring plugins; 0 is `ExitCode.OK` (docs/cli.md tells of them)."""

    WARNING = 1
    CRITICAL = 2
    UNKNOWN = 3


class LlmshedError(Exception):
    """An error whose text is for the person at the terminal: one sentence with the input and what is accepted."""

    exit_code: ExitCode = ExitCode.BUG


class ConfigError(LlmshedError):
    """The configuration cannot be used; `problems` holds every mistake found, each with its place."""

    exit_code = ExitCode.CONFIG

    def __init__(self, problems: tuple[str, ...]) -> None:
        """Keep all problems, so that one run shows every mistake."""
        super().__init__("\n".join(problems))
        self.problems = problems


class ProfileError(LlmshedError):
    """A profile file breaks its schema or contradicts itself."""

    exit_code = ExitCode.CONFIG


class LadderError(LlmshedError):
    """A ladder file breaks its schema or contradicts itself, or a configuration cannot apply it."""

    exit_code = ExitCode.CONFIG


class ReplicaFileError(LlmshedError):
    """A file that describes a simulated replica breaks its schema or contradicts itself."""

    exit_code = ExitCode.CONFIG


class TokenizerError(LlmshedError):
    """A tokenizer or chat template cannot be loaded or used."""

    exit_code = ExitCode.NO_INPUT


class PromptError(LlmshedError):
    """A prompt cannot be counted: the template refuses it, or its form is not one that the engine accepts."""

    exit_code = ExitCode.BAD_DATA


class TraceError(LlmshedError):
    """A trace cannot be read: `line` counts from 1, None where the trace as a whole is at fault."""

    exit_code = ExitCode.BAD_DATA

    def __init__(self, problem: str, line: int | None = None) -> None:
        """Put the line before the problem, as editors and compilers do; the caller knows the file."""
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.line = line


class OutputError(LlmshedError):
    """A file that was asked for cannot be written."""

    exit_code = ExitCode.IO


class EngineError(LlmshedError):
    """A replica or gateway that was asked something did not answer usefully."""

    exit_code = ExitCode.UNAVAILABLE
