"""Whether an idle replica moves as the one did that was measured, whatever it tells of itself."""

from dataclasses import dataclass

from llmshed.calibration.results import Idle
from llmshed.profile.comparison import Kind, Match
from llmshed.profile.fingerprint import Behaviour
from llmshed.profile.judging import OFF_RATIO


@dataclass(frozen=True, slots=True)
class Moved:
    """One pace of the idle replica.

    Args:
        kind: which one.
        measured_seconds: of the profile; None when it does not record it, or of another prompt.
        seen_seconds: now; None when it was not measured.
    """

    kind: Kind
    measured_seconds: float | None
    seen_seconds: float | None

    @property
    def match(self) -> Match:
        """Return a mismatch where it is more than a fifth off, to either side, as `serve` judges paces."""
        if self.measured_seconds is None or self.seen_seconds is None:
            return Match.UNVERIFIED
        off = abs(self.seen_seconds / self.measured_seconds - 1.0)
        return Match.MISMATCH if off > OFF_RATIO else Match.MATCH

    def __str__(self) -> str:
        return f"{self.kind}: {_shown(self.measured_seconds)} in the profile, {_shown(self.seen_seconds)} now"


def moved(measured: Behaviour, idle: Idle | None) -> tuple[Moved, Moved]:
    """Return the fixed prompt's time and that of a lone sequence's step, beside those of the profile."""
    same_prompt = idle is not None and measured.fixed_prompt_tokens == idle.fixed_prompt_tokens
    prefill = measured.fixed_prompt_prefill_seconds if same_prompt else None
    return (
        Moved(Kind.PREFILL_PACE, prefill, None if idle is None else idle.fixed_prompt_seconds),
        Moved(Kind.DECODE_PACE, measured.decode_step_seconds, None if idle is None else idle.decode_step_seconds),
    )


def _shown(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{1000 * seconds:.4g} ms"
