"""What can go wrong when a Prometheus is asked."""

from enum import StrEnum

from llmshed.errors import ExitCode, LlmshedError


class Trouble(StrEnum):
    """Why there is no answer."""

    UNREACHABLE = "unreachable"
    """Nobody answers at the address."""
    TIMED_OUT = "timed_out"
    """The answer took too long."""
    FORBIDDEN = "forbidden"
    """The credentials are missing or do not allow it."""
    NOT_PROMETHEUS = "not_prometheus"
    """Something answers that is no Prometheus, or not at this path."""
    BAD_QUERY = "bad_query"
    """It cannot evaluate the query."""
    UNABLE = "unable"
    """It is there and cannot answer now: overloaded, starting, or a store behind it is missing."""


class PrometheusError(LlmshedError):
    """A question without an answer; the text names the address, what came, and what to look at."""

    def __init__(self, trouble: Trouble, message: str) -> None:
        """Keep what kind of trouble it is beside the sentence."""
        super().__init__(message)
        self.trouble = trouble
        match trouble:
            case Trouble.FORBIDDEN:
                self.exit_code = ExitCode.NO_PERMISSION
            case Trouble.BAD_QUERY:
                self.exit_code = ExitCode.BUG
            case Trouble.TIMED_OUT | Trouble.UNABLE:
                self.exit_code = ExitCode.TEMPORARY
            case Trouble.UNREACHABLE | Trouble.NOT_PROMETHEUS:
                self.exit_code = ExitCode.UNAVAILABLE
