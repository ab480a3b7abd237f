"""Asking Prometheus for the figures of a review, and telling them."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import typer

from llmshed.clock import Clock
from llmshed.errors import LlmshedError
from llmshed.prometheus.answers import Series
from llmshed.prometheus.client import Access, Prometheus
from llmshed.prometheus.questions import ask_all
from llmshed.rendering.review_page import summary
from llmshed.rendering.review_tables import review_tables
from llmshed.review.figures import Key, Review, review_of
from llmshed.review.questions import QUESTIONS, Question, written

from . import _output
from ._diagnose_read import raise_if_nothing
from ._spans import written_span

LOOKS = 1_000
"""At what holds for a part of the time, over the span; 15 s apart at least."""
_LEAST_STEP_SECONDS = 15


@dataclass(frozen=True, slots=True)
class Asking:
    """What is asked of whom; times in seconds."""

    url: str
    access: Access
    span_seconds: int
    selector: str
    timeout_seconds: float

    @property
    def step_seconds(self) -> int:
        """Return the time between two looks."""
        return max(_LEAST_STEP_SECONDS, self.span_seconds // LOOKS)


def reviewed(asking: Asking, clock: Clock) -> Review:
    """Ask all questions side by side, and return the figures.

    Raises:
        PrometheusError: none of them was answered; the text says why.
    """
    server, now = Prometheus(asking.url, asking.access, asking.timeout_seconds), clock.wall()
    queries = {one.name: written(one, asking.span_seconds, asking.step_seconds, asking.selector) for one in QUESTIONS}
    answers = ask_all(
        {name: partial(server.at, query, now) for name, query in queries.items()}, asking.timeout_seconds, clock
    )
    raise_if_nothing(answers)
    found: dict[str, dict[Key, float]] = {}
    unread: dict[str, str] = {}
    for question in QUESTIONS:
        answer = answers[question.name]
        if isinstance(answer, LlmshedError):
            unread[question.name] = str(answer)
        else:
            found[question.name] = _rows(question, answer)
    return review_of(found, unread, asking.span_seconds, asking.step_seconds)


def _rows(question: Question, answer: tuple[Series, ...]) -> dict[Key, float]:
    return {
        tuple(series.labels.get(label, "") for label in question.labels): series.values[-1]
        for series in answer
        if series.values
    }


def report(found: Review, url: str) -> dict[str, Any]:
    """Return a review as JSON; what is not known is null."""
    return {
        "prometheus": url,
        "span_seconds": found.span_seconds,
        "known_share": found.known_share,
        "refused_tokens_estimate": found.refused_tokens,
        "refused": [one._asdict() for one in found.refused],
        "would_refuse": [one._asdict() for one in found.would_refuse],
        "served": [one._asdict() for one in found.served],
        "waiting": [one._asdict() for one in found.waiting],
        "pools": [{**one._asdict(), "dedicated": one.dedicated} for one in found.pools],
        "sizes": [{**one._asdict(), "used_share": one.used_share} for one in found.sizes],
        "profiles": list(found.profiles),
        "unread": dict(found.unread),
    }


def print_review(found: Review, url: str) -> None:
    """Print a review for people."""
    typer.echo(f"{url}: the last {written_span(found.span_seconds)}.")
    for sentence in summary(found):
        typer.echo(sentence)
    for table in review_tables(found):
        _output.print_grid(table.caption, table.columns, table.rows, table.note)
