"""How `llmshed profile verify` tells its result."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from llmshed.calibration.events import StopReason
from llmshed.calibration.verification import Conclusion
from llmshed.errors import ExitCode

from ._calibrate_run import FAILED
from ._calibrate_words import facts_as_object, facts_in_words
from ._output import print_grid, print_json, print_note, print_table

if TYPE_CHECKING:
    from llmshed.calibration.behaving import Moved
    from llmshed.calibration.verification import Level, Share
    from llmshed.profile.comparison import Compared

    from ._profile_verify_run import Asked, Seen

SCHEMA = "llmshed.profile_verify/1"
SENTENCES = {
    Conclusion.HOLDS: "holds",
    Conclusion.DOES_NOT_HOLD: "does not hold: an objective breaks at the ceiling; calibrate again",
    Conclusion.TOO_LOW: "holds, and is too low: the knee is further up",
    Conclusion.UNSURE: "unsure: too little was seen for a verdict; give it more time (--max-duration)",
}
_EXIT_CODES = {
    Conclusion.HOLDS: ExitCode.OK,
    Conclusion.DOES_NOT_HOLD: ExitCode.CONFIG,
    Conclusion.TOO_LOW: ExitCode.OK,
    Conclusion.UNSURE: ExitCode.NO_PROPOSAL,
}


def tell(asked: "Asked", seen: "Seen", *, as_json: bool) -> ExitCode:
    """Print the result and return the exit code; a run that was cut short has levels, and no conclusion."""
    driven = seen.driven
    conclusion = None if _cut_short(seen) else seen.machine.verified().conclusion
    for sentence in driven.doing.limits:
        print_note(f"generator_limited: {sentence}")
    if as_json:
        print_json(SCHEMA, _as_object(asked, seen, conclusion))
    else:
        _print(asked, seen, conclusion)
    for mismatch in seen.mismatches:
        print_note(f"not the replica that was measured: {mismatch}")
    if driven.disturbed is not None:
        print_note(str(driven.disturbed))
        return driven.disturbed.exit_code
    if driven.stop is None:
        print_note("interrupted: what was seen by then is no verdict")
        return ExitCode.INTERRUPTED
    if conclusion is None:
        print_note(driven.stop.detail)
        return ExitCode.UNAVAILABLE
    return ExitCode.CONFIG if seen.mismatches else _EXIT_CODES[conclusion]


def _cut_short(seen: "Seen") -> bool:
    """Say whether it was interrupted, disturbed, or ended by a replica that does not answer."""
    return seen.driven.stop is None or seen.driven.stop.reason in FAILED


def _ended(seen: "Seen") -> str:
    if seen.driven.disturbed is not None:
        return "disturbed"
    stop = seen.driven.stop
    if stop is None:
        return "interrupted"
    return stop.reason.value if stop.reason in FAILED else StopReason.DONE.value


def _print(asked: "Asked", seen: "Seen", conclusion: Conclusion | None) -> None:
    traffic, verified = asked.traffic, seen.machine.verified()
    print_table(
        {
            "profile": f"{asked.profile.label} ({asked.file})",
            **facts_in_words(asked.place.url, seen.replica, seen.plan, traffic.words, asked.place.seed),
            "fingerprint": _counted((*seen.compared, *seen.moved)),
            "the ceiling": "no verdict" if conclusion is None else SENTENCES[conclusion],
        }
    )
    print_grid(
        "Beyond its objective",
        ("level", "reserved tokens", "TTFT", "of", "interval", "TPOT", "of", "interval"),
        [_row("ceiling", verified.ceiling), _row("above", verified.above)],
    )


def _counted(compared: "tuple[Compared | Moved, ...]") -> str:
    counts = Counter(one.match.value for one in compared)
    return ", ".join(f"{count} {match}" for match, count in sorted(counts.items()))


def _row(name: str, level: "Level") -> tuple[str, ...]:
    return (name, f"{level.tokens:,.0f}", *_cells(level.late), *_cells(level.slow))


def _cells(share: "Share") -> tuple[str, str, str]:
    low, high = share.interval
    return f"{share.beyond:,}", f"{share.judged:,}", f"{low:.1%} to {high:.1%}" if share.judged else "-"


def _as_object(asked: "Asked", seen: "Seen", conclusion: Conclusion | None) -> dict[str, Any]:
    verified = seen.machine.verified()
    return {
        "file": asked.file,
        "profile": asked.profile.label,
        **facts_as_object(asked.place.url, seen.replica, asked.traffic.words, asked.place.seed),
        "conclusion": None if conclusion is None else conclusion.value,
        "ended": _ended(seen),
        "ceiling": _level(verified.ceiling),
        "above": _level(verified.above),
        "fingerprint": [
            {"field": one.field, "match": one.match, "measured": one.measured, "seen": one.seen}
            for one in seen.compared
        ],
        "behaviour": [
            {
                "kind": one.kind,
                "match": one.match,
                "measured_seconds": one.measured_seconds,
                "seen_seconds": one.seen_seconds,
            }
            for one in seen.moved
        ],
    }


def _level(level: "Level") -> dict[str, Any]:
    return {"tokens": level.tokens, "kept": level.kept, "late": _share(level.late), "slow": _share(level.slow)}


def _share(share: "Share") -> dict[str, Any]:
    low, high = share.interval
    return {"judged": share.judged, "beyond": share.beyond, "low_ratio": low, "high_ratio": high}
