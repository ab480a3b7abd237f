"""From a validated body to tokens: permit, checks, count, queue, and the script that is read out."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from llmshed.emulator.checks import check_grammar, check_parameters
from llmshed.emulator.engine import Generation
from llmshed.emulator.failures import TgiError, invalid, overloaded
from llmshed.emulator.forms import Parameters
from llmshed.emulator.replica import Live, Replica
from llmshed.emulator.vocabulary import Piece, Vocabulary
from llmshed.emulator.writing import Script, Writer, made_up_logprob
from llmshed.errors import PromptError
from llmshed.simulation.limits import OutputPlan, plan_output
from llmshed.simulation.parameters import CHUNK_TOKENS
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Ended
from llmshed.simulation.sequences import Sequence

INLINE_CHARACTERS = 8_192
"""Texts up to this are counted on the loop, in about a millisecond; longer ones in a thread."""
VALIDATION_WORKERS = 2
"""TGI's default number of tokenizer threads."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """One sequence to generate.

    Args:
        inputs: the text that is tokenized.
        parameters: native parameters; other routes fill them in.
        add_special_tokens: false for rendered chats.
        copy: which of several equal sequences (`best_of`) this is.
        spelled: text that the output must be, for tools and grammars; None for free text.
    """

    inputs: str
    parameters: Parameters
    add_special_tokens: bool = True
    copy: int = 0
    spelled: str | None = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """A sequence that holds a permit and is not counted yet; `began_at` is the clock's reading when it came."""

    ask: Ask
    key: int
    began_at: float


@dataclass(frozen=True, slots=True)
class OutputToken:
    """One token as it is told; `ended` is set on the last."""

    index: int
    piece: Piece
    logprob: float
    top: tuple[tuple[Piece, float], ...]
    ended: Ended | None


class Run:
    """One sequence in progress."""

    def __init__(self, ask: Ask, generation: Generation, script: Script, words: Vocabulary, began_at: float) -> None:
        """Join what the engine produces with what it says."""
        self.ask = ask
        self.key = generation.key
        self.input_tokens = generation.plan.input_tokens
        self.began_at = began_at
        self._generation = generation
        self._script = script
        self._words = words

    @property
    def seed(self) -> int | None:
        """Return the seed that TGI tells: none for greedy decoding, a made-up one when the request gave none."""
        parameters = self.ask.parameters
        if not parameters.samples:
            return None
        return parameters.seed if parameters.seed is not None else 10_000_019 * (self.key + 1)

    async def next(self) -> OutputToken:
        """Wait for the next token.

        Raises:
            TgiError: the batch failed.
        """
        progress = await self._generation.next()
        index, wanted = progress.index, self.ask.parameters.top_n_tokens or 0
        piece, logprob = self._script.piece(index), made_up_logprob(index)
        others = [self._words.words[(index + place) % len(self._words.words)] for place in range(1, wanted)]
        ranked = [(piece, logprob), *((other, logprob - place) for place, other in enumerate(others, 1))]
        return OutputToken(index, piece, logprob, tuple(ranked[:wanted]), progress.ended)

    def text(self, tokens: int) -> str:
        """Return the text of the first tokens."""
        return self._script.text(tokens)


class Infer:
    """Starts sequences."""

    def __init__(self, replica: Replica, vocabulary: Vocabulary) -> None:
        """Take the engine and its words."""
        self.vocabulary = vocabulary
        self._replica = replica
        settings = replica.settings
        self._writer = Writer(vocabulary, settings.seed, settings.output_mean_tokens)
        self._threads = ThreadPoolExecutor(VALIDATION_WORKERS, thread_name_prefix="tokenize")

    async def start(self, ask: Ask, live: Live, *, refused: bool = False) -> Run:
        """Take a permit, validate, count and queue; `refused` is the fault of a replica without permits.

        Raises:
            TgiError: no permit, or a rule or limit is broken; nothing is held then.
        """
        return await self.submit(self.admit(ask, live, refused=refused))

    def admit(self, ask: Ask, live: Live, *, refused: bool = False) -> Admitted:
        """Take a permit, and check all that needs no token count.

        TGI does so much of each of several sequences before it counts the first.

        Raises:
            TgiError: as `start`.
        """
        began_at = self._replica.clock.now()
        with self._counting_failures():
            if refused:
                raise overloaded()
            key = self._replica.engine.take_permit()
            live.keys.append(key)
            with self._holding(key):
                check_parameters(ask.inputs, ask.parameters, self._replica.settings.parameters)
        return Admitted(ask, key, began_at)

    async def submit(self, admitted: Admitted) -> Run:
        """Count and queue a sequence that holds a permit.

        Raises:
            TgiError: as `start`.
        """
        ask, key = admitted.ask, admitted.key
        limits = self._replica.settings.parameters
        with self._counting_failures(), self._holding(key):
            input_tokens, blocks = await self._count(ask)
            asked, truncate = ask.parameters.max_new_tokens, ask.parameters.truncate
            if isinstance(plan_output(limits, input_tokens, asked, truncate), OutputPlan):
                # The engine looks at a grammar after the limits.
                check_grammar(ask.parameters.grammar)
            script = self._script(ask, limits.max_total_tokens + CHUNK_TOKENS)
            sequence = Sequence(key, input_tokens, asked, truncate, script.natural_end, blocks)
            generation = self._replica.engine.submit(sequence)
        return Run(ask, generation, script, self.vocabulary, admitted.began_at)

    async def off_loop(self, work: Callable[[], T], characters: int) -> T:
        """Do work on a text of this size: at once if it is short, else in a thread."""
        if characters <= INLINE_CHARACTERS:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Let the threads end; work that has not begun is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    @contextmanager
    def _counting_failures(self) -> Iterator[None]:
        try:
            yield
        except TgiError as error:
            if error.metric is not None:
                self._replica.metrics.count("tgi_request_failure", ("err", error.metric))
            raise

    @contextmanager
    def _holding(self, key: int) -> Iterator[None]:
        """Give the permit back if the sequence is refused."""
        try:
            yield
        except TgiError:
            self._replica.engine.leave(key)
            raise

    async def _count(self, ask: Ask) -> tuple[int, PromptBlocks | None]:
        """Return the tokens of a prompt, and their ids if the prefix cache is to know them.

        A request for the log probabilities of its prompt, as every whole completion is, passes the cache by.

        Raises:
            TgiError: the text cannot be tokenized.
        """
        caching = self._replica.settings.parameters.prefix_caching and not ask.parameters.decoder_input_details

        def counted() -> tuple[int, PromptBlocks | None]:
            if not caching:
                return self.vocabulary.count(ask.inputs, add_special_tokens=ask.add_special_tokens), None
            ids = self.vocabulary.ids(ask.inputs, add_special_tokens=ask.add_special_tokens)
            # What is cut off goes from the front.
            kept = ids if ask.parameters.truncate is None else ids[-ask.parameters.truncate :]
            return len(ids), PromptBlocks(kept, unit_tokens=1)

        try:
            return await self.off_loop(counted, len(ask.inputs))
        except PromptError as error:
            raise invalid(f"tokenizer error {error}") from None

    def _script(self, ask: Ask, most_tokens: int) -> Script:
        script = self._writer.script(ask.inputs, ask.parameters.seed, ask.copy)
        if ask.spelled is not None:
            script.spell(ask.spelled)
        if ask.parameters.stop:
            script.stop_at(ask.parameters.stop, most_tokens)
        return script
