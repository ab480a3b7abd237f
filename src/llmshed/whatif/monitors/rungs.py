"""Whether lower ranks are taken in a pool where a rung sheds: see the package's text."""

from llmshed.admission.actions import Action, Dispatch, Enqueue, Evict, Refuse, RungChanged
from llmshed.admission.events import Event, PolicyChanged
from llmshed.admission.reasons import Reason
from llmshed.admission.verdict import Verdict
from llmshed.whatif.monitors.seen import Seen, Sight


class RungWatch:
    """Keeps the largest request of each rank that a rung of each pool shed since its last step."""

    def __init__(self) -> None:
        """Begin with ladders on which nobody was shed."""
        self._shed: dict[str, dict[int, Seen]] = {}

    def hear(self, event: Event) -> None:
        """Take a fact that the gate was told: other ladders may shed others, though no rung is another one by name."""
        if isinstance(event, PolicyChanged):
            self._shed.clear()

    def look(self, sight: Sight, action: Action) -> list[str]:
        """Return a sentence if work is taken in whose place a better rank was shed; to be asked before it is seen."""
        match action:
            case RungChanged(step):
                self._shed.pop(step.pool, None)
            case Refuse(key, verdict) | Evict(key, verdict):
                if verdict.rung is not None and verdict.reason is Reason.SHED_PRIORITY:
                    self._note(_told(sight, key, verdict), verdict.pool or "")
            case Dispatch(key, replica, verdict):
                return self._taken(_told(sight, key, verdict), sight.accounts[replica].spec.pool)
            case Enqueue(key, pool, verdict):
                return self._taken(_told(sight, key, verdict), pool)
            case _:
                pass
        return []

    def _note(self, seen: Seen, pool: str) -> None:
        """Note whom a rung shed, in the pool that it was meant for if another rung had sent it on."""
        of_pool = self._shed.setdefault(seen.request.moved_from or pool, {})
        largest = of_pool.get(seen.rank)
        if largest is None or seen.tokens > largest.tokens:
            of_pool[seen.rank] = seen

    def _taken(self, taken: Seen, pool: str) -> list[str]:
        return [
            f"request {taken.request.key} of rank {taken.rank} was taken in pool {pool}, in whose place request"
            f" {shed.request.key} of rank {rank} was shed"
            for rank, shed in self._shed.get(pool, {}).items()
            if rank < taken.rank and taken.tokens <= shed.tokens and taken.sequences <= shed.sequences
        ]


def _told(sight: Sight, key: int, verdict: Verdict) -> Seen:
    seen = sight.requests[key]
    seen.told(verdict)
    return seen
