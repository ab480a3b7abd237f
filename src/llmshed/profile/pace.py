"""How fast a replica is, seen from the requests that it is given anyway, against what its profile leads to expect.

    prompts   A streamed prompt that is sent while no other is processed: the time to its first data.
    steps     Once a second one stream is picked: the median of its gaps in which no prompt was processed.

An answer that is not streamed shows neither; while one that is not streamed runs, no prompt counts as alone, since
nobody sees when its own is over. Nothing is sent to find out, so a replica without traffic stays unverified.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from llmshed.profile.comparison import Kind, Match
from llmshed.profile.expected import ExpectedPrompts, ExpectedSteps
from llmshed.profile.judging import PaceJudge
from llmshed.profile.model import Profile

GAPS = 8
"""Gaps of one sample: their median bears three that an event loop or a network delayed."""
LEAST_PROMPTS = 3
LEAST_STREAMS = 10
"""Samples that make a window: a prompt is seen whole, and steps are many, but of few moments."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it is sent.

    Args:
        prompt_tokens: input tokens of all its prompts.
        sequences: how many it runs as.
        ceiling_tokens: output ceiling of each.
        streamed: whether its tokens show as they come.
        fresh: whether no turn of its conversation was served before, whose cached prompt would make it fast.
    """

    prompt_tokens: int
    sequences: int
    ceiling_tokens: int
    streamed: bool
    fresh: bool


@dataclass(slots=True)
class _Running:
    """A request that was sent; `begun_at` is when its first data came."""

    sent: Sent
    begun_at: float | None = None

    def kv_tokens(self, step_seconds: float, now: float) -> float:
        """Return what it holds by now, its output reckoned by the steps since it began."""
        steps = 0.0 if self.begun_at is None else (now - self.begun_at) / step_seconds
        return self.sent.prompt_tokens + self.sent.sequences * min(self.sent.ceiling_tokens, steps)


class PaceWatch:
    """Follows the requests on one replica by their keys; `now` is of one monotonic clock, in seconds.

    Attributes:
        awaited: keys whose next data is to be told by `heard`; that of all others need not be, since it is told for
            each piece of each answer.
    """

    def __init__(self, profile: Profile | None) -> None:
        """Expect what a profile tells; of what it does not tell, and without one, nothing is judged."""
        self._steps = None if profile is None else ExpectedSteps.of(profile)
        self._prompts = None if profile is None else ExpectedPrompts.of(profile)
        self._judges = {Kind.PREFILL_PACE: PaceJudge(LEAST_PROMPTS), Kind.DECODE_PACE: PaceJudge(LEAST_STREAMS)}
        self._running: dict[int, _Running] = {}
        self._begun_sequences = 0
        self._waiting: set[int] = set()
        self._alone: tuple[int, float, int] | None = None
        self._unseen_prompt = False
        self._picked: int | None = None
        self._heard_at: float | None = None
        self._gaps: list[float] = []
        self.awaited: set[int] = set()

    @property
    def matches(self) -> Mapping[Kind, Match]:
        """Return what is believed of both paces."""
        return {kind: judge.match for kind, judge in self._judges.items()}

    @property
    def ratios(self) -> Mapping[Kind, float]:
        """Return how many times the expected seconds were last seen, where any were."""
        return {kind: judge.ratio for kind, judge in self._judges.items() if judge.ratio is not None}

    def sent(self, key: int, sent: Sent, now: float) -> None:
        """Note that a request is on its way."""
        if self._steps is None:
            return
        alone = not self._waiting and not self._unseen_prompt and sent.streamed and sent.fresh and sent.sequences == 1
        self._alone = (key, now, self._begun_sequences) if alone else None
        self._heard_at = None
        self._running[key] = _Running(sent)
        self._waiting.add(key)
        if sent.streamed:
            self.awaited.add(key)

    def heard(self, key: int, now: float) -> None:
        """Note that data of an awaited request came."""
        running = self._running.get(key)
        if running is None:
            return
        if running.begun_at is None:
            self._begin(key, running, now)
        elif key == self._picked:
            self._take_gap(key, now)

    def ended(self, key: int) -> None:
        """Note that a request runs no more; an unknown one changes nothing."""
        running = self._running.pop(key, None)
        if running is None:
            return
        if running.begun_at is not None:
            self._begun_sequences -= running.sent.sequences
        else:
            # An engine may go on with the prompt of a client that left, so the next one would not be alone.
            self._unseen_prompt = self._unseen_prompt or running.sent.streamed
        self._waiting.discard(key)
        self.awaited.discard(key)
        if self._alone is not None and key == self._alone[0]:
            self._alone = None
        if key == self._picked:
            self._put_down()

    def look(self, now: float) -> None:
        """Judge the windows that are over, and pick the stream whose steps are taken next; called each second or so."""
        for judge in self._judges.values():
            judge.look(now)
        if self._picked is None:
            self._pick()

    def _begin(self, key: int, running: _Running, now: float) -> None:
        running.begun_at = now
        self._begun_sequences += running.sent.sequences
        self._waiting.discard(key)
        self.awaited.discard(key)
        self._unseen_prompt = False
        if self._alone is not None and self._alone[0] == key and self._prompts is not None:
            _, since, sequences = self._alone
            ratio = self._prompts.ratio(now - since, running.sent.prompt_tokens, sequences)
            if ratio is not None:
                self._judges[Kind.PREFILL_PACE].sample(ratio, now)
        self._alone = None

    def _pick(self) -> None:
        """Pick the oldest stream of one sequence; only such a one has one event for each step."""
        for key, running in self._running.items():
            if running.begun_at is not None and running.sent.streamed and running.sent.sequences == 1:
                self._picked, self._heard_at = key, None
                self.awaited.add(key)
                return

    def _put_down(self) -> None:
        if self._picked is not None:
            self.awaited.discard(self._picked)
        self._picked, self._heard_at = None, None
        self._gaps.clear()

    def _take_gap(self, key: int, now: float) -> None:
        if self._prompt_is_processed():
            self._heard_at = None
            return
        if self._heard_at is not None and now > self._heard_at:
            self._gaps.append(now - self._heard_at)
        self._heard_at = now
        if len(self._gaps) == GAPS:
            self._sample_steps(now)
            self._put_down()
            self._running[key] = self._running.pop(key)  # the last in line to be picked again

    def _prompt_is_processed(self) -> bool:
        return any(self._running[key].sent.streamed for key in self._waiting)

    def _sample_steps(self, now: float) -> None:
        if self._steps is None:
            return
        sequences = self._begun_sequences + self._unseen_sequences()
        step_seconds = self._steps.least_seconds(sequences)
        kv_tokens = sum(running.kv_tokens(step_seconds, now) for running in self._running.values())
        ratio = self._steps.ratio(median(self._gaps), sequences, kv_tokens)
        self._judges[Kind.DECODE_PACE].sample(ratio, now)

    def _unseen_sequences(self) -> int:
        return sum(one.sent.sequences for one in self._running.values() if not one.sent.streamed)
