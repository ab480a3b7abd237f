"""The signal watches of all replicas, by name: begun and ended by the fleet, fed by the relay."""

from dataclasses import dataclass

from llmshed.admission.request import Request
from llmshed.gateway.replicas.likeness import Likeness
from llmshed.gateway.replicas.pool_tools import PoolPlan
from llmshed.gateway.replicas.serving import Serving
from llmshed.gateway.replicas.signals import SignalMeans, SignalWatch
from llmshed.gateway.tasks import Spawned, Tasks


@dataclass(slots=True, eq=False)
class _Watched:
    """A watch that runs."""

    watch: SignalWatch
    task: Spawned


class SignalWatches:
    """Knows a replica from when it first comes up until it goes down; of others it is told in vain.

    A replica that comes back starts with its whole budget: what was heard of it was of another process.
    """

    def __init__(self, means: SignalMeans, tasks: Tasks) -> None:
        """Watch with `means`; the watches run as tasks of their owner."""
        self._means = means
        self._tasks = tasks
        self._watched: dict[str, _Watched] = {}

    def came_up(self, name: str, plan: PoolPlan, serving: Serving, likeness: Likeness) -> None:
        """Watch a replica that the core has just been told of, or go on with its new numbers."""
        if (known := self._watched.get(name)) is not None:
            known.watch.met_anew(plan, serving)
            return
        watch = SignalWatch(name, plan, serving, self._means, likeness)
        self._watched[name] = _Watched(watch, self._tasks.spawn(watch.run(), f"signals of {name}"))

    def went_down(self, name: str) -> None:
        """Watch a replica no more; its gauges go too."""
        if (known := self._watched.pop(name, None)) is not None:
            known.task.cancel()
            self._means.observer.signals_forgotten(name)

    def sent(self, name: str, request: Request, output_ceiling_tokens: int | None) -> None:
        """Note that a request is on its way to a replica."""
        if (known := self._watched.get(name)) is not None:
            known.watch.sent(request, output_ceiling_tokens)

    def heard(self, name: str, key: int) -> None:
        """Note that data of a request's answer came."""
        if (known := self._watched.get(name)) is not None:
            known.watch.heard(key)

    def spoke(self, name: str) -> None:
        """Note that an engine said anything else to a request."""
        if (known := self._watched.get(name)) is not None:
            known.watch.spoke()

    def ended(self, name: str, key: int) -> None:
        """Note that a request runs there no more."""
        if (known := self._watched.get(name)) is not None:
            known.watch.ended(key)

    def violations(self) -> tuple[str, ...]:
        """Return the invariants that do not hold, as sentences; empty when all do."""
        return tuple(text for known in self._watched.values() for text in known.watch.violations())
