"""What every simulated replica offers, whichever engine's scheduler it follows."""

from typing import Protocol

from llmshed.simulation.limits import LimitProblem, OutputPlan
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Result
from llmshed.simulation.sequences import Sequence, SequenceView


class ReplicaModel(Protocol):
    """One engine replica in virtual time.

    Life of a sequence: `take_permit`, then `submit` or `leave`, then results of `advance` until `Ended`, `Failed` or,
    after `leave`, `Dropped`. Call `advance(now)` before anything else that happens at `now`; a late call catches up,
    since an engine does not wait for whoever reads its answers. How often `advance` is called between two calls of
    the others at different times never changes what happens or when: the whole course follows from them and their
    times. Calls at one instant reach the engine together, unless an `advance` to that instant parts them: an idle
    engine begins there with what it has by then.
    """

    @property
    def queue_size(self) -> int:
        """Return the waiting sequences, with abandoned ones that the engine has not noticed."""

    @property
    def batch_size(self) -> int:
        """Return the running sequences."""

    @property
    def held_kv_tokens(self) -> int:
        """Return the KV tokens that running sequences hold, in whole blocks."""

    @property
    def permits_in_use(self) -> int:
        """Return the sequences that count against the engine's own limit on requests."""

    @property
    def next_step_at(self) -> float | None:
        """Return when the step in progress ends; None while idle, or stalled without an end."""

    @property
    def next_change_at(self) -> float | None:
        """Return when something other than one more token for each decoding sequence happens; None as above.

        It is never before `next_step_at`. A caller that does not relay single tokens advances to here, so that a long
        stretch of decoding costs one call.
        """

    def take_permit(self, key: int) -> bool:
        """Take a permit for a sequence about to be validated; False when the engine refuses it as overloaded."""

    def submit(self, sequence: Sequence, now: float) -> OutputPlan | LimitProblem:
        """Queue a counted sequence that holds a permit; a problem leaves nothing behind, the permit included."""

    def leave(self, key: int) -> None:
        """Note that the client of a sequence is gone; a key that is not live is ignored."""

    def fail_step(self, message: str) -> None:
        """Let the step that runs, or else the next one, fail.

        Lost are all that take part in it; where it is the end of the engine's process (vLLM), all that wait too.
        """

    def stall(self, now: float, seconds: float) -> None:
        """Let no step end, and none begin, for `seconds` from `now`; infinity until `resume`."""

    def resume(self, now: float) -> None:
        """End a stall."""

    def advance(self, now: float) -> list[Result]:
        """End and begin every step that is due up to `now`, and return what came of them in order."""

    def output_tokens(self, key: int) -> int:
        """Return the tokens that a live sequence has produced, over all its chunks; 0 before its first."""

    def cached_tokens(self, prompt: PromptBlocks | None, input_tokens: int) -> int:
        """Return the leading tokens of a prompt that need not be computed if it began to run now; changes nothing.

        At least its last token is always computed. Whoever waits before it may still end and leave more, or take the
        room of what is there.

        Args:
            prompt: identity of the prompt's leading tokens; None when the cache is not asked.
            input_tokens: length of the prompt, at least 1; taken to be cut by no `truncate`.

        Raises:
            ValueError: the unit of the prompt's ids is below 1.
        """

    def sequences(self) -> list[SequenceView]:
        """Return every live sequence: those in validation, then running, then waiting."""

    def check(self) -> tuple[str, ...]:
        """Return the broken invariants, one sentence each; empty when all hold."""
