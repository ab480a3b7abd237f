"""Many questions side by side, within one time for all of them."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from llmshed.clock import Clock
from llmshed.prometheus.answers import Series
from llmshed.prometheus.errors import PrometheusError, Trouble

MOST_AT_ONCE = 8
"""Below the 20 queries that Prometheus evaluates at once by default, since others ask it too."""

Question = Callable[[], tuple[Series, ...]]
Answer = tuple[Series, ...] | PrometheusError


@dataclass(slots=True)
class _Asked:
    """The questions that nobody has taken yet, and the answers."""

    left: SimpleQueue[tuple[str, Question]]
    answers: SimpleQueue[tuple[str, Answer]]


def ask_all(questions: Mapping[str, Question], within_seconds: float, clock: Clock) -> dict[str, Answer]:
    """Ask all and return an answer or an error for each, after `within_seconds` at the latest.

    What is not answered by then is an error that says so. Its thread is left behind and never holds the process up.
    """
    asked = _Asked(SimpleQueue(), SimpleQueue())
    for named in questions.items():
        asked.left.put(named)
    for _ in range(min(MOST_AT_ONCE, len(questions))):
        threading.Thread(target=_work, args=(asked,), daemon=True, name="llmshed-question").start()
    deadline = clock.now() + within_seconds
    found: dict[str, Answer] = {}
    while len(found) < len(questions):
        try:
            name, answer = asked.answers.get(timeout=max(0.0, deadline - clock.now()))
        except Empty:
            break
        found[name] = answer
    late = PrometheusError(Trouble.TIMED_OUT, f"no answer within {within_seconds:g} s")
    return {name: found.get(name, late) for name in questions}


def _work(asked: _Asked) -> None:
    while True:
        try:
            name, question = asked.left.get_nowait()
        except Empty:
            return
        try:
            answer: Answer = question()
        except PrometheusError as error:
            answer = error
        asked.answers.put((name, answer))
