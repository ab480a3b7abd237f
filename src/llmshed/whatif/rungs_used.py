"""How pools stood on their ladders in a run, and whose answers their rungs changed."""

from collections import Counter

from llmshed.admission.policy import AdmissionPolicy
from llmshed.admission.verdict import Verdict
from llmshed.ladder.standing import Step
from llmshed.whatif.report import LadderUse, PoolOnLadder
from llmshed.whatif.visits import Try


class RungsUsed:
    """Counts steps, refusals by rungs and degraded answers while a run goes on."""

    def __init__(self, policy: AdmissionPolicy) -> None:
        """Begin with every pool that has a ladder on the ground, at time 0."""
        self._ladders = {pool.name: pool.ladder for pool in policy.pools if pool.ladder is not None}
        self._stands = dict.fromkeys(self._ladders, (0, 0.0))
        self._seconds = {name: [0.0] * (len(ladder.rungs) + 1) for name, ladder in self._ladders.items()}
        self._climbs = Counter[str]()
        self._refused = Counter[str]()
        self._degraded = 0
        self._good_degraded = 0
        self._good = 0

    def stepped(self, step: Step, now: float) -> None:
        """Note a step of a pool."""
        self._stay(step.pool, now)
        self._stands[step.pool] = (step.after, now)
        self._climbs[step.pool] += step.after > step.before

    def refused(self, verdict: Verdict) -> None:
        """Note a refusal, if a rung is its ground."""
        if verdict.rung is not None:
            self._refused[verdict.rung] += 1

    def finished(self, attempt: Try) -> None:
        """Note an answer that came to its end."""
        if not attempt.visit.feasible:
            return
        good, degraded = attempt.met_objectives, bool(attempt.degradations)
        self._degraded += degraded
        self._good += good
        self._good_degraded += good and degraded

    def use(self, window_seconds: float, now: float) -> LadderUse | None:
        """Return the figures of a run that ended now, with rates over `window_seconds`; None without ladders."""
        if not self._ladders:
            return None
        for name in self._ladders:
            self._stay(name, now)
        return LadderUse(
            pools=tuple(
                PoolOnLadder(name, ladder.label, tuple(self._seconds[name]), self._climbs[name])
                for name, ladder in self._ladders.items()
            ),
            refused=dict(self._refused),
            degraded=self._degraded,
            good_degraded=self._good_degraded,
            goodput_undegraded_requests_per_second=(self._good - self._good_degraded) / window_seconds,
            goodput_degraded_requests_per_second=self._good_degraded / window_seconds,
        )

    def _stay(self, pool: str, now: float) -> None:
        rung, since = self._stands[pool]
        self._seconds[pool][rung] += now - since
        self._stands[pool] = (rung, now)
