"""What a calibration tells: where it stands, and what it has found so far."""

from dataclasses import dataclass
from enum import StrEnum

from llmshed.calibration.events import StopReason
from llmshed.calibration.observations import Knee


class Phase(StrEnum):
    """What is being measured."""

    IDLE = "idle replica"
    KV = "gross ceiling"
    PREFILL = "prefill rate"
    CAP = "hard cap"
    CONFIRM = "confirmation"
    OVER = "over"


UNITS = {
    Phase.IDLE: "requests",
    Phase.KV: "reserved tokens",
    Phase.PREFILL: "prompt tokens/s",
    Phase.CAP: "sequences",
    Phase.CONFIRM: "prompt tokens/s",
    Phase.OVER: "reserved tokens",
}
"""Unit of a phase's level."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where it stands.

    Args:
        phase: what is being measured.
        level: level that is held or being reached.
        unit: its unit.
        knee: what is known of the phase's knee; None before anything is.
        seconds_left: time after which it ends at the latest.
        samples: asks that were answered.
    """

    phase: Phase
    level: float
    unit: str
    knee: Knee | None
    seconds_left: float
    samples: int


@dataclass(frozen=True, slots=True)
class Idle:
    """How the replica moved when one request ran at a time; all in seconds but the first.

    Args:
        fixed_prompt_tokens: length of the fixed prompt.
        fixed_prompt_seconds: time to its first token, median.
        decode_step_seconds: TPOT of one sequence, median.
        ttft_p50_seconds: time to first token over the mix, median.
        ttft_p95_seconds: likewise, 95th percentile.
    """

    fixed_prompt_tokens: int
    fixed_prompt_seconds: float
    decode_step_seconds: float
    ttft_p50_seconds: float
    ttft_p95_seconds: float


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What one sweep found.

    Args:
        phase: what was raised; its unit is in `UNITS`.
        knee: where an objective breaks; None when no level held.
        broke: the objective that breaks first, `TTFT` or `TPOT`; None while none did.
        late: levels, with first tokens that were judged and those that came late.
        slow: levels, with answers that were judged and those that were slow.
        paces: TPOT by level, ascending, in seconds; of the hard cap's sweep it is the decode curve.
        pace_seconds: mean TPOT near the knee; None when no answer ended there.
        output_ratio: tokens of whole answers as a part of their ceilings; None when none ended.
        preemptions_per_minute: recomputed sequences during the sweep; None where the engine does not tell.
        requests: asks sent.
        seconds: how long it took.
    """

    phase: Phase
    knee: Knee | None
    broke: str | None
    late: tuple[tuple[float, int, int], ...]
    slow: tuple[tuple[float, int, int], ...]
    paces: tuple[tuple[float, float], ...]
    pace_seconds: float | None
    output_ratio: float | None
    preemptions_per_minute: float | None
    requests: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Result:
    """All that was found so far.

    Args:
        idle: the idle replica; None before all of it was measured.
        sweeps: sweeps that have begun, in their order.
        output_tokens: lengths of answers under the mix as it is, ascending.
        finished: asks that were answered in full.
        refused: asks that the engine refused.
        failed: asks that failed.
        stop: why it ended; None while it runs.
        detail: the same as a sentence; empty while it runs.
    """

    idle: Idle | None
    sweeps: tuple[SweepResult, ...]
    output_tokens: tuple[int, ...]
    finished: int
    refused: int
    failed: int
    stop: StopReason | None
    detail: str

    def sweep(self, phase: Phase) -> SweepResult | None:
        """Return what the sweep of a phase found; None when it has not begun."""
        return next((sweep for sweep in self.sweeps if sweep.phase is phase), None)
