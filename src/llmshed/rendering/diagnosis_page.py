"""A diagnosis as one page: finding, cause and what to change first, then every signal in the order of an overload."""

from collections.abc import Iterator
from datetime import UTC, datetime

from llmshed.diagnosis.checks import shown
from llmshed.diagnosis.diagnose import Diagnosis, Named, Reading
from llmshed.diagnosis.signals import Stage
from llmshed.rendering.page import Figure, Page, Section, Table
from llmshed.rendering.plots import Caption, curve

UNKNOWN = "-"


def diagnosis_page(
    told: Diagnosis, headline: str, facts: tuple[tuple[str, str], ...], version: str, *, drawn: bool = True
) -> Page:
    """Return the page.

    Args:
        told: the diagnosis.
        headline: its finding in one sentence.
        facts: what it rests on, by name.
        version: llmshed's own.
        drawn: False leaves the drawings out.

    Raises:
        MissingPlotsError: drawings are wanted and matplotlib is not installed.
    """
    sections = [Section("Warnings", told.warnings)] if told.warnings else []
    sections += [_cause(named) for named in told.named]
    if told.change is not None:
        setting = "" if told.change.setting is None else f"{told.change.setting}: "
        watch = f"Watch: {', '.join(told.change.watch)}."
        sections.append(Section("Change one thing", (f"{setting}{told.change.what}", watch)))
    sections += [_step(step.number, step.title, step.state, step.sentences) for step in told.steps]
    sections += [_stage(stage, told, drawn=drawn) for stage in Stage]
    if told.unseen:
        words = ", ".join(cause.replace("_", " ") for cause in told.unseen)
        sections.append(Section("Not looked at, for want of data", (f"{words}.",)))
    began = () if told.began is None else (f"Trouble began at {_clock(told.began)} UTC.",)
    causes = tuple(f"Cause: {one.suspicion.cause.replace('_', ' ')}." for one in told.named)
    return Page("Diagnosis", (headline, *began, *causes), facts, tuple(sections), f"llmshed {version}")


def _cause(named: Named) -> Section:
    suspicion = named.suspicion
    share = f", {named.share:.0%} of the weight" if named.share < 1 else ""
    heading = f"Cause: {suspicion.cause.replace('_', ' ')} (confidence {named.confidence}{share})"
    sentences = (*(f"For: {one}" for one in suspicion.held), *(f"Against: {one}" for one in suspicion.against))
    unknown = (f"{suspicion.unknown} more could not be looked at.",) if suspicion.unknown else ()
    return Section(heading, (*sentences, *unknown))


def _step(number: int, title: str, state: str, sentences: tuple[str, ...]) -> Section:
    return Section(f"{number}. {title}: {state.replace('_', ' ')}", sentences)


def _stage(stage: Stage, told: Diagnosis, *, drawn: bool) -> Section:
    """Tell the signals of one stage: a drawing of each that was read, and a row of each that is known."""
    readings = [one for one in told.readings if one.signal.stage is stage]
    known = [one for one in readings if one.value is not None]
    missing = ", ".join(one.signal.name for one in readings if one.value is None)
    rows = tuple(_row(one) for one in known)
    columns = ("", "now", "before", "departed (UTC)")
    tables = (Table(f"Signals of {stage}", columns, rows, f"Not told: {missing}." if missing else ""),) if rows else ()
    nothing = () if rows else (f"Nothing is told of any of {missing}.",)
    figures = tuple(_figures(known)) if drawn else ()
    return Section(str(stage).capitalize(), nothing, figures, tables)


def _row(reading: Reading) -> tuple[str, str, str, str]:
    name = reading.signal.name
    return (
        reading.signal.meaning,
        UNKNOWN if reading.value is None else shown(name, reading.value),
        UNKNOWN if reading.baseline is None else shown(name, reading.baseline),
        UNKNOWN if reading.departure is None else _clock(reading.departure.at),
    )


def _figures(known: list[Reading]) -> Iterator[Figure]:
    """Draw each signal over the minutes up to now, and where it departed from its baseline."""
    for reading in known:
        track, signal = reading.track, reading.signal
        if track is None:
            continue
        end = track.at(len(track.values) - 1)
        course = [((track.at(place) - end) / 60, value) for place, value in enumerate(track.values)]
        series = {"course": course}
        words = f"now {_row(reading)[1]}, before {_row(reading)[2]}"
        if reading.departure is not None:
            place = round((reading.departure.at - track.start) / track.step_seconds)
            series["departure"] = [course[place]]
            words += f", departed {_clock(reading.departure.at)} UTC"
        name = f"signal-{signal.name.replace('_', '-')}"
        caption = Caption(name, signal.meaning, words, "minutes before now", str(signal.unit) or "number")
        yield Figure(curve(caption, series), f"{signal.meaning}: {words}.")


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
