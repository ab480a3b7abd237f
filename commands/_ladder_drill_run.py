"""Runs `llmshed ladder drill`: reads the set, sends it, and keeps what was found."""

import asyncio
import hashlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from llmshed.errors import ExitCode, LlmshedError

from ._address import read_address
from ._input import read_bytes, read_text, shown_name
from ._output import print_note
from ._signals import cancel_in_order
from ._whole_file import check_place, put_whole

if TYPE_CHECKING:
    from llmshed.drilling.cases import Case
    from llmshed.drilling.run import Outcome
    from llmshed.drilling.terms import Terms
    from llmshed.ladder.records import DrillFile, DrillRecord


class ResultsError(LlmshedError):
    """The file of results is none."""

    exit_code = ExitCode.BAD_DATA


class ReplacedError(LlmshedError):
    """A model was replaced while it was drilled."""

    exit_code = ExitCode.TEMPORARY


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """The cases, and the name and digest of the file that they came from."""

    cases: "tuple[Case, ...]"
    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was asked for.

    Args:
        evaluation: the set.
        data: address of the data listener; None for the one that the gateway tells.
        key_file: file with a tenant's key; None to send none.
        concurrency: cases at a time.
        timeout_seconds: longest that an answer may take.
        cases_out: file for a row of each case on each path; None for none.
        quiet: whether no progress is shown.
    """

    evaluation: EvaluationSet
    data: str | None
    key_file: Path | None
    concurrency: int
    timeout_seconds: float
    cases_out: Path | None
    quiet: bool


def the_set(set_file: str, *, allow_commands: bool) -> EvaluationSet:
    """Read the set, and see that all of its checks can be made.

    Raises:
        LlmshedError: it cannot be read or used, or needs what was not permitted.
    """
    from llmshed.drilling.cases import MOST_SET_BYTES, SetError, read_cases
    from llmshed.drilling.judge import require_means

    content, name = read_bytes(set_file, MOST_SET_BYTES + 1), shown_name(set_file)
    if len(content) > MOST_SET_BYTES:
        raise SetError(f"{name}: is larger than {MOST_SET_BYTES >> 20} MiB")
    cases = read_cases(content, name)
    require_means(cases, allow_commands=allow_commands)
    return EvaluationSet(cases, Path(name).name, hashlib.sha256(content).hexdigest())


def place_of_results(output: Path | None, terms: "Terms") -> Path | None:
    """Return the file of results: the one that was named, else the ladder's; None where neither is."""
    if output is None and terms.evaluations is not None:
        return Path(terms.evaluations)
    return output


def read_results(place: Path | None) -> "DrillFile":
    """Return what earlier drills found.

    Raises:
        ResultsError: the file is something else, which is not to be written over.
    """
    from pydantic import ValidationError

    from llmshed.ladder.records import MOST_BYTES, NO_DRILLS, DrillFile

    if place is None or not place.exists():
        return NO_DRILLS
    content = read_bytes(str(place), MOST_BYTES + 1)
    try:
        if len(content) <= MOST_BYTES:
            return DrillFile.model_validate_json(content)
    except ValidationError:
        pass
    raise ResultsError(f"{place}: is no file of drills (llmshed.drills/1); name another one by --output")


def check_places(place: Path | None, cases_out: Path | None) -> None:
    """See that results can be written before anything is sent.

    Raises:
        OutputError: they cannot.
    """
    if place is None:
        print_note("the ladder names no file of `evaluations`, so nothing is kept: add --output FILE to keep it")
    else:
        check_place("--output", place)
    if cases_out is not None:
        check_place("--cases-out", cases_out)


def run_drill(wishes: Wishes, terms: "Terms", terms_now: "Callable[[], Terms]") -> "DrillRecord":
    """Send it all and return its record.

    Raises:
        ReplacedError: another model answers at the end than at the beginning.
        LlmshedError: the gateway does not answer, or does not let the drill in.
    """
    from llmshed.drilling.summing import drill_record

    evaluation = wishes.evaluation
    outcomes = asyncio.run(_sent(wishes, terms))
    after = terms_now()
    if (after.facts, after.ladder) != (terms.facts, terms.ladder):
        raise ReplacedError("a model or the ladder was replaced while it was drilled: drill it again")
    if wishes.cases_out is not None:
        put_whole("--cases-out", wishes.cases_out, _rows(outcomes))
    return drill_record(outcomes, terms, evaluation.name, evaluation.sha256, datetime.now(UTC))


def keep(place: Path | None, results: "DrillFile") -> None:
    """Write the results, all or nothing.

    Raises:
        OutputError: they cannot be written.
    """
    if place is not None:
        put_whole("--output", place, results.model_dump_json(by_alias=True, indent=1) + "\n")


async def _sent(wishes: Wishes, terms: "Terms") -> "list[Outcome]":
    from llmshed.clock import SystemClock
    from llmshed.drilling.judge import Judge
    from llmshed.drilling.run import Manner, drilled

    cancel_in_order()
    key = None if wishes.key_file is None else read_text(str(wishes.key_file)).strip()
    url = terms.data if wishes.data is None else read_address("--data", wishes.data)
    manner = Manner(url, key, wishes.concurrency, wishes.timeout_seconds)
    cases = wishes.evaluation.cases
    with _progress(len(cases) * len(terms.paths), quiet=wishes.quiet) as step:
        async with Judge() as judge:
            return await drilled(cases, terms, manner, judge, SystemClock(), step)


@contextmanager
def _progress(requests: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Show on a terminal how many requests have ended."""
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("drilling", total=requests)
        yield lambda: shown.advance(task)


def _rows(outcomes: "Sequence[Outcome]") -> str:
    import orjson

    from llmshed.drilling.summing import case_row

    return "".join(orjson.dumps(case_row(outcome)).decode() + "\n" for outcome in outcomes)
