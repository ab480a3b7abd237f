"""The one place where an exception becomes a refusal."""

import logging

from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.errors import LlmshedError, PromptError, TokenizerError
from llmshed.gateway.contract.problem import Problem
from llmshed.gateway.counting.pool import BacklogError

_log = logging.getLogger(__name__)


class RefusedError(LlmshedError):
    """A request that is refused with a problem that is known in full."""

    def __init__(self, problem: Problem) -> None:
        """Keep the problem."""
        super().__init__(problem.message)
        self.problem = problem


def problem_of(error: Exception) -> Problem:
    """Return what the client is told; an exception that nobody foresaw is logged in full and told as our own fault."""
    match error:
        case RefusedError():
            return error.problem
        case BodyError():
            return Problem.from_body_error(error)
        case PromptError():
            return Problem(Reason.MALFORMED, str(error))
        case BacklogError():
            return Problem(Reason.COUNTING_BACKLOG, str(error), retry_after_seconds=error.retry_after_seconds)
        case TokenizerError():
            # The log says why; its text names files, which are nothing to a client.
            return Problem(Reason.TOKENIZER_UNAVAILABLE, Reason.TOKENIZER_UNAVAILABLE.row.meaning)
        case _:
            _log.error("request_crashed", exc_info=error)
            return Problem(Reason.INTERNAL_ERROR, Reason.INTERNAL_ERROR.row.meaning)
