"""The profile that a run of `llmshed calibrate` supports, and its file."""

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llmshed.calibration.proposal import Facts, propose
from llmshed.profile import Profile, parse_profile

from ._calibrate_fingerprint import fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from llmshed.config.base import Settings

    from ._calibrate_run import Calibrated
    from ._calibrate_wishes import Wishes

SCHEMA = "llmshed.profile/1"


@dataclass(frozen=True, slots=True)
class Found:
    """A profile and what to know beside it, one sentence each."""

    profile: Profile
    text: str
    remarks: tuple[str, ...]


def found_profile(done: "Calibrated", wishes: "Wishes", facts: "Mapping[str, str]", day: dt.date) -> Found | None:
    """Return the profile that a run supports; None where it found no gross ceiling or no hard cap.

    Args:
        done: the run.
        wishes: name, version and declared facts.
        facts: what the file says in its comments.
        day: of the measurement.

    Raises:
        ProfileError: the figures contradict each other, or the name is none; the text says which.
    """
    run = done.run
    known = Facts(run.lanes, wishes.declared.max_batch_prefill_tokens)
    proposal = propose(run.standing.machine.result(), run.plan, known)
    if proposal is None:
        return None
    info = done.replica.info
    sections = {
        "budget": proposal.budget,
        "prefill": proposal.prefill,
        "decode": proposal.decode,
        "latency": proposal.latency,
        "output": proposal.output,
        "lanes": proposal.lanes,
        "fingerprint": fingerprint(done.replica, wishes.declared, run.header["mix"], day, proposal.behaviour),
    }
    told = {
        "schema": SCHEMA,
        "name": wishes.name,
        "version": wishes.version,
        "limits": {"max_input_tokens": info.max_input_tokens, "max_total_tokens": info.max_total_tokens},
        **{name: _values(section) for name, section in sections.items() if section is not None},
    }
    comments = {**facts, **{f"remark {number}": remark for number, remark in enumerate(proposal.remarks, 1)}}
    text = _text(told, comments)
    # What is written is what `serve` will read, so it is read before it is kept.
    return Found(parse_profile(text, wishes.outputs.profile.name), text, proposal.remarks)


def _values(section: "Settings") -> dict[str, Any]:
    return section.model_dump(by_alias=True, exclude_none=True)


def _text(values: "Mapping[str, Any]", comments: "Mapping[str, str]") -> str:
    """Return the file: what it was made of as comments, each on one line, then its values."""
    import tomli_w

    lines = "".join(f"# {name}: {' '.join(value.split())}\n" for name, value in comments.items())
    return f"# Written by llmshed calibrate.\n{lines}\n{tomli_w.dumps(_filled(values))}"


def _filled(values: "Mapping[str, Any]") -> dict[str, Any]:
    """Return the values that are there, without tables that hold none."""
    inner = {name: _filled(value) if isinstance(value, dict) else value for name, value in values.items()}
    return {name: value for name, value in inner.items() if value not in ({}, None, ())}
