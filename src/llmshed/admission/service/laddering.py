"""The ladder of one pool between its machine and the pool's requests: what it hears, and what is in force on whom."""

from collections.abc import Callable

from llmshed.admission.echo import Arrival
from llmshed.admission.policy import PoolPolicy
from llmshed.admission.request import Lane
from llmshed.admission.service.measures import Measures
from llmshed.admission.verdict import Decision, Verdict
from llmshed.ladder.machine import PoolLadder
from llmshed.ladder.model import Ladder, Rung
from llmshed.ladder.reading import PoolReading
from llmshed.ladder.standing import Cause, Hold, Standing, Step


class Laddering:
    """One pool's ladder.

    Attributes:
        measures: what is in force; None on the ground, so that a decision there looks no further.
    """

    __slots__ = ("_ladder", "_lanes", "_machine", "_pool", "measures")

    def __init__(self, pool: PoolPolicy, ladder: Ladder, objective_seconds: float, now: float) -> None:
        """Stand on the ground, with a window that begins now."""
        self._pool = pool.name
        self._lanes = pool.lanes
        self._ladder = ladder
        self._machine = PoolLadder(pool.name, ladder, objective_seconds, now)
        self.measures: Measures | None = None

    @property
    def label(self) -> str:
        """Return name and version of the ladder."""
        return self._ladder.label

    @property
    def in_force(self) -> tuple[Rung, ...]:
        """Return the rungs in force, first to last."""
        return self._machine.in_force

    @property
    def standing(self) -> Standing:
        """Return where the pool stands."""
        return self._machine.standing()

    def has_rung(self, name: str) -> bool:
        """Say whether the ladder has a rung of that name."""
        return self._ladder.rung_number(name) is not None

    def back_in_seconds(self, number: int, now: float) -> float:
        """Return the least time until rung `number`, which is in force, can be out of force."""
        return self._machine.back_in_seconds(number, now)

    def decided(self, verdict: Verdict) -> None:
        """Hear what was decided on an arrival; an interactive one that waits is heard as it leaves the queue.

        Who is refused counts with the wait that it was spared, where a rung refuses it too. A refusal without an
        estimate says nothing of the pool: a size, a quota, a deadline that has passed. Nor does a client that comes
        again before its time, or to a rung that sent it away: the signal would follow whoever comes most often.
        """
        if verdict.lane is not Lane.INTERACTIVE or verdict.decision is Decision.QUEUE:
            return
        if verdict.rung is not None and verdict.arrival in {Arrival.REPEAT, Arrival.EARLY}:
            return
        if verdict.delay is not None:
            self._machine.sample(verdict.delay.wait_seconds)
        elif verdict.decision is Decision.ADMIT or verdict.rung is not None:
            self._machine.sample(0.0)

    def waited(self, lane: Lane, seconds: float) -> None:
        """Hear how long a request waited that left the queue."""
        if lane is Lane.INTERACTIVE:
            self._machine.sample(seconds)

    def offered(self, tokens: int) -> None:
        """Hear what a first arrival would have reserved with the ceiling that it asked for, whatever became of it."""
        self._machine.offered(tokens)

    def let_in(self, tokens: int) -> None:
        """Hear of the reserved tokens of a dispatch."""
        self._machine.let_in(tokens)

    def next_wakeup(self) -> float:
        """Return when a window or what is held ends."""
        return self._machine.next_wakeup()

    def advance(self, now: float, read: Callable[[], PoolReading]) -> list[Step]:
        """End what is due; `read` looks at the pool as a window ends."""
        steps = self._machine.advance(now, read)
        if steps:
            self._measure()
        return steps

    def hold(self, hold: Hold, now: float) -> list[Step]:
        """Hold a rung; see `PoolLadder.hold`."""
        return self._stepped(self._machine.hold(hold, now))

    def release(self) -> list[Step]:
        """Give up what is held."""
        return self._stepped(self._machine.release())

    def renew(self, pool: PoolPolicy, ladder: Ladder, objective_seconds: float, now: float) -> list[Step]:
        """Go on by another policy."""
        self._lanes, self._ladder = pool.lanes, ladder
        return self._stepped(self._machine.renew(ladder, objective_seconds, now))

    def dropped(self) -> list[Step]:
        """Return the step of a pool whose ladder is taken away."""
        before = len(self.in_force)
        return (
            [Step(self._pool, before, 0, Cause.RELOADED, Standing(self.label, 0, None, (), 0, 0, 0))] if before else []
        )

    def check(self) -> list[str]:
        """Return the invariants that do not hold."""
        wrong = [f"{self._pool}: {text}" for text in self._machine.check()]
        if (self.measures is None) != (not self.in_force):
            wrong.append(f"{self._pool}: what acts on arrivals is not what is in force")
        return wrong

    def _stepped(self, step: Step | None) -> list[Step]:
        self._measure()
        return [] if step is None else [step]

    def _measure(self) -> None:
        self.measures = Measures(self.in_force, self._lanes) if self.in_force else None
