"""How `llmshed calibrate` tells and keeps its result: the profile, the page, a table or one object."""

import datetime as dt
import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from llmshed import __version__
from llmshed.calibration.events import StopReason
from llmshed.calibration.results import Phase
from llmshed.errors import ExitCode
from llmshed.rendering.calibration_page import CalibrationFigures, calibration_page
from llmshed.rendering.figures import duration
from llmshed.rendering.page import render_page

from ._calibrate_figures import figures_of
from ._calibrate_profile import found_profile
from ._calibrate_run import FAILED
from ._calibrate_wishes import plan_as_object
from ._calibrate_words import facts_as_object, facts_in_words
from ._output import print_json, print_note, print_table
from ._whole_file import put_whole

if TYPE_CHECKING:
    from llmshed.calibration.results import SweepResult

    from ._calibrate_profile import Found
    from ._calibrate_run import Calibrated
    from ._calibrate_wishes import Wishes

SCHEMA = "llmshed.calibrate/1"


def tell(wishes: "Wishes", done: "Calibrated", *, as_json: bool) -> ExitCode:
    """Write the files, print the result, and return the exit code.

    Raises:
        OutputError: a file cannot be written; of the profile, what was there before is still there.
    """
    facts = _facts(wishes, done)
    if wishes.dry_run:
        planned = {**facts, **_planned(done)}
        if as_json:
            print_json(SCHEMA, {**_replica_object(wishes, done), "plan": plan_as_object(done.run.plan)})
        else:
            print_table(planned)
        return ExitCode.OK
    for limit in () if done.doing is None else done.doing.limits:
        print_note(f"generator_limited: {limit}")
    found = _found(wishes, done, facts)
    if found is not None:
        put_whole("--profile-out", wishes.outputs.profile, found.text)
    _write_page(wishes, figures_of(done, found, facts))
    _print(wishes, done, found, as_json=as_json)
    _note_end(wishes, done, found)
    return _exit_code(done, found)


def _found(wishes: "Wishes", done: "Calibrated", facts: dict[str, str]) -> "Found | None":
    """Return the profile that the run supports; None after a run that failed, was disturbed, or found too little."""
    if done.stop is None or done.disturbed is not None or done.stop.reason in FAILED:
        return None
    return found_profile(done, wishes, facts, dt.datetime.now(tz=dt.UTC).date())


def _exit_code(done: "Calibrated", found: "Found | None") -> ExitCode:
    if done.disturbed is not None:
        return done.disturbed.exit_code
    if done.stop is None:
        return ExitCode.INTERRUPTED
    if done.stop.reason in FAILED:
        return ExitCode.UNAVAILABLE
    return ExitCode.NO_PROPOSAL if found is None else ExitCode.OK


def _note_end(wishes: "Wishes", done: "Calibrated", found: "Found | None") -> None:
    """Say on stderr why there is no profile, or what takes from its worth, and how to go on."""
    journal = wishes.outputs.journal
    if done.disturbed is not None:
        print_note(f"{done.disturbed}; no profile was written")
    elif done.stop is None:
        print_note(f"interrupted: what was measured is kept; go on with --resume {journal}")
    elif found is None or done.stop.reason is not StopReason.DONE:
        ended = "no profile was written" if found is None else "the profile holds what was found by then"
        print_note(f"{done.stop.detail}; {ended}")
    for remark in () if found is None else found.remarks:
        print_note(remark)


def _facts(wishes: "Wishes", done: "Calibrated") -> dict[str, str]:
    """Return what was measured and with what, in words."""
    header = done.run.header
    return facts_in_words(wishes.place.url, done.replica, done.run.plan, str(header["mix"]), int(header["seed"]))


def _planned(done: "Calibrated") -> dict[str, str]:
    plan = done.run.plan
    first = plan.first_level_tokens
    return {
        "first level": "a few requests" if first is None else f"{first:,} reserved tokens",
        "at most": duration(plan.max_duration_seconds),
        "sizes of the mix": f"{len(set(plan.mix)):,}",
    }


def _print(wishes: "Wishes", done: "Calibrated", found: "Found | None", *, as_json: bool) -> None:
    outputs = wishes.outputs
    if as_json:
        files = {"samples": str(outputs.samples), "journal": str(outputs.journal), "page": str(outputs.report)}
        told = None if found is None else found.profile.model_dump(mode="json", by_alias=True, exclude_none=True)
        result = {**_replica_object(wishes, done), "ended": _reason(done), "profile": told, "files": files}
        print_json(SCHEMA, result)
        return
    rows: dict[str, object] = {**_facts(wishes, done), "ended": done.ended}
    if found is not None:
        budget, seen = found.profile.budget, done.run.standing.machine.result()
        rows["gross ceiling"] = f"{budget.gross_ceiling_tokens:,} reserved tokens{_upper(seen.sweep(Phase.KV))}"
        rows["guard band"] = f"{budget.guard_band_ratio:.0%}"
        rows["hard cap"] = f"{budget.hard_cap_sequences:,} sequences{_upper(seen.sweep(Phase.CAP))}"
        rows["profile"] = outputs.profile
    print_table({**rows, "samples": outputs.samples, "page": outputs.report})


def _upper(sweep: "SweepResult | None") -> str:
    """Return what is known of a knee from above."""
    if sweep is None or sweep.knee is None:
        return ""
    high = sweep.knee.high
    return ", and no level broke" if high is None else f", at most {high:,.0f}"


def _reason(done: "Calibrated") -> str:
    if done.disturbed is not None:
        return "disturbed"
    return "interrupted" if done.stop is None else done.stop.reason.value


def _replica_object(wishes: "Wishes", done: "Calibrated") -> dict[str, Any]:
    header = done.run.header
    return facts_as_object(wishes.place.url, done.replica, str(header["mix"]), int(header["seed"]))


def _write_page(wishes: "Wishes", figures: CalibrationFigures) -> None:
    """Write the page; without matplotlib it has no drawings, and that is told."""
    drawn = find_spec("matplotlib") is not None
    # At its first drawing it tells of its font cache, and where no home is writable, of that.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    if not drawn:
        print_note("the page has no drawings, which need matplotlib: pip install 'llmshed[plots]'")
    put_whole("the page", wishes.outputs.report, render_page(calibration_page(figures, __version__, drawn=drawn)))
