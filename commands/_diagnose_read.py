"""Asking Prometheus for all signals, and what they tell."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import typer

from llmshed.clock import Clock
from llmshed.diagnosis.diagnose import Diagnosis, diagnose
from llmshed.diagnosis.facts import Facts
from llmshed.diagnosis.signals import SIGNALS, Signal, written
from llmshed.diagnosis.track import Track
from llmshed.errors import LlmshedError
from llmshed.prometheus.client import Access, Prometheus
from llmshed.prometheus.errors import PrometheusError, Trouble
from llmshed.prometheus.questions import Answer, ask_all

from ._input import read_text

if TYPE_CHECKING:
    from llmshed.prometheus.answers import Series

RATE_STEPS = 4
"""Steps of the range over which a counter's rate is taken: two scrapes may fail and a rate is still known."""
_ABSENT = "no such series"
_NO_NUMBER = "no number"


@dataclass(frozen=True, slots=True)
class Asking:
    """What is asked of whom; times in seconds."""

    url: str
    access: Access
    window_seconds: int
    baseline_seconds: int
    step_seconds: int
    selector: str
    timeout_seconds: float

    @property
    def rate_seconds(self) -> int:
        """Return the range over which counters are taken."""
        return max(60, RATE_STEPS * self.step_seconds)

    def query(self, signal: Signal) -> str:
        """Return the query of a signal."""
        return written(signal, self.rate_seconds, self.selector)


def access_of(
    bearer_file: Path | None, basic_file: Path | None, ca_file: Path | None, cert_file: Path | None, *, checked: bool
) -> Access:
    """Read the credentials.

    Raises:
        typer.BadParameter: two kinds are named, or a file holds none.
        LlmshedError: a file cannot be read.
    """
    if bearer_file is not None and basic_file is not None:
        raise typer.BadParameter("give one of --bearer-file and --basic-file")
    basic = None
    if basic_file is not None:
        user, colon, password = read_text(str(basic_file)).strip().partition(":")
        if not colon:
            raise typer.BadParameter(f"--basic-file {basic_file}: must hold USER:PASSWORD")
        basic = (user, password)
    bearer = None if bearer_file is None else read_text(str(bearer_file)).strip()
    if bearer is not None and not bearer.isprintable():
        raise typer.BadParameter(f"--bearer-file {bearer_file}: must hold one line")
    for option, file in (("--ca-file", ca_file), ("--cert-file", cert_file)):
        if file is not None and not file.is_file():
            raise typer.BadParameter(f"{option} {file}: there is no such file")
    return Access(bearer, basic, ca_file, cert_file, checked)


def diagnosed(asking: Asking, clock: Clock, seed: int) -> Diagnosis:
    """Read all signals side by side and diagnose them.

    Raises:
        PrometheusError: none of them was answered; the text says why.
    """
    return diagnose(read_facts(asking, clock), Random(seed).randrange)  # noqa: S311 - a bootstrap's draws


def read_facts(asking: Asking, clock: Clock) -> Facts:
    """Read all signals side by side.

    Raises:
        PrometheusError: none of them was answered.
    """
    until = clock.wall() // asking.step_seconds * asking.step_seconds
    since = until - asking.window_seconds
    start = since - asking.baseline_seconds
    server = Prometheus(asking.url, asking.access, asking.timeout_seconds)
    questions = {
        signal.name: partial(server.over, asking.query(signal), start, until, asking.step_seconds) for signal in SIGNALS
    }
    answers = ask_all(questions, asking.timeout_seconds, clock)
    raise_if_nothing(answers)
    tracks: dict[str, Track] = {}
    unread: dict[str, str] = {}
    for name, answer in answers.items():
        if isinstance(answer, LlmshedError):
            unread[name] = str(answer)
            continue
        track = _track(answer, start, until, asking.step_seconds)
        if track.known:
            tracks[name] = track
        else:
            unread[name] = _NO_NUMBER if answer else _ABSENT
    return Facts(tracks, since, until, unread)


def raise_if_nothing(answers: dict[str, Answer]) -> None:
    """Raise what stands in the way of every question; what only some meet is told at those."""
    troubles = [answer for answer in answers.values() if isinstance(answer, PrometheusError)]
    if len(troubles) == len(answers):
        raise min(troubles, key=lambda one: list(Trouble).index(one.trouble))


def _track(answer: "tuple[Series, ...]", start: float, until: float, step_seconds: float) -> Track:
    """Lay the one series of an answer on the grid; all of them, where a store told one in several pieces."""
    points = [point for series in answer for point in zip(series.times, series.values, strict=True)]
    return Track.of(start, until, step_seconds, points)
