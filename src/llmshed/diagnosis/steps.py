"""The five steps, in their order: each says what it saw, or that it has no data, and the next goes on."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from llmshed.diagnosis.checks import shown
from llmshed.diagnosis.correlation import Follows, follows
from llmshed.diagnosis.facts import Facts


class State(StrEnum):
    """What a step found."""

    GOOD = "good"
    WRONG = "wrong"
    UNKNOWN = "unknown"
    TO_DO = "to_do"


class StepResult(NamedTuple):
    """One step: its number from 1, what it looks at, what it found, and that in sentences."""

    number: int
    title: str
    state: State
    sentences: tuple[str, ...]


MOST_MISCOUNTED = 0.0
"""Not one: a count that differs once differs by a template or a tokenizer."""
SLOW_COUNT_SECONDS = 0.25
SHARE_MOVED_RATIO = 0.15


def counting_is_right(facts: Facts) -> StepResult:
    """Look at tokenization and lanes: the gateway's counts against the engines', time of a count, the lanes' shares."""
    title = "Tokenization and lanes are right"
    sentences: list[str] = []
    wrong = False
    miscounted, slow = facts.highest("miscounted"), facts.during("counting_p95")
    before, during = facts.before("interactive_share"), facts.during("interactive_share")
    if miscounted is not None:
        wrong |= miscounted > MOST_MISCOUNTED
        sentences.append(f"Prompts that an engine counted otherwise: {miscounted:.0f}.")
    if slow is not None:
        wrong |= slow >= SLOW_COUNT_SECONDS
        sentences.append(f"A count took {shown('counting_p95', slow)} at the 95th percentile.")
    if before is not None and during is not None:
        wrong |= abs(during - before) >= SHARE_MOVED_RATIO
        sentences.append(f"Interactive part of the arrivals: {during:.0%}, {before:.0%} before.")
    return _told(1, title, sentences, wrong=wrong)


def refusals_come_first(facts: Facts) -> StepResult:
    """Look which departed first, refusals or the age of the queue: early refusal is how it is meant."""
    title = "Refusals rise before queue age"
    if facts.window("interactive_refused") is None or facts.window("oldest_age") is None:
        return StepResult(2, title, State.UNKNOWN, ("No data on refusals or on the age of the queue.",))
    refused, aged = facts.departure("interactive_refused"), facts.departure("oldest_age")
    if aged is None:
        told = "Neither departed from its baseline." if refused is None else "Refusals rose, the queue's age did not."
        return StepResult(2, title, State.GOOD, (told,))
    if refused is None:
        told = "The queue aged and nothing was refused: its bounds are too wide."
        return StepResult(2, title, State.WRONG, (told,))
    seconds = aged.at - refused.at
    step_seconds = facts.tracks["oldest_age"].step_seconds
    if seconds >= -step_seconds:
        return StepResult(2, title, State.GOOD, (f"Refusals rose {max(seconds, 0.0):.0f} s before the queue aged.",))
    told = f"The queue aged {-seconds:.0f} s before refusals rose: its bounds are too wide."
    return StepResult(2, title, State.WRONG, (told,))


def latency_against_bulk(facts: Facts, draw: Callable[[int], int]) -> tuple[StepResult, Follows | None]:
    """Look whether interactive latency follows the prompts of bulk."""
    title = "Interactive latency does not follow bulk prefill"
    bulk, ttft = facts.tracks.get("bulk_input"), facts.tracks.get("ttft_p95")
    found = None if bulk is None or ttft is None else follows(bulk, ttft, draw)
    if found is None or bulk is None:
        return StepResult(3, title, State.UNKNOWN, ("Too little bulk work, or too few streams, to tell.",)), None
    sentence = (
        f"Rank correlation {found.correlation:.2f} (95 %: {found.low:.2f} to {found.high:.2f}) at a lag of "
        f"{found.lag_steps * bulk.step_seconds:.0f} s; TTFT {shown('ttft_p95', found.busy)} with most bulk, "
        f"{shown('ttft_p95', found.quiet)} with least."
    )
    matters = found.is_sure and found.busy >= 1.25 * found.quiet
    return StepResult(3, title, State.WRONG if matters else State.GOOD, (sentence,)), found


def replay_it() -> StepResult:
    """Tell how to send the same lengths again, at rates that are chosen."""
    return StepResult(
        4,
        "Replay a sanitized length distribution at controlled rates",
        State.TO_DO,
        (
            "llmshed replay --sanitize DECISIONS.jsonl --output lengths.jsonl",
            "llmshed replay lengths.jsonl --to http://REPLICA --speed 0.5    # a replica that serves nobody",
        ),
    )


def _told(number: int, title: str, sentences: list[str], *, wrong: bool) -> StepResult:
    if not sentences:
        return StepResult(number, title, State.UNKNOWN, ("No data.",))
    return StepResult(number, title, State.WRONG if wrong else State.GOOD, tuple(sentences))
