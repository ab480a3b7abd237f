"""The hindcast of `llmshed whatif`: a decision log's traffic before the configuration that it met in truth."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil, inf
from typing import TYPE_CHECKING

from ._whatif_progress import shown
from ._whatif_runs import Study, plan_of, rng_of

if TYPE_CHECKING:
    from llmshed.whatif.hindcast import Hindcast
    from llmshed.whatif.logged_figures import LoggedFigures
    from llmshed.whatif.report import RunReport
    from llmshed.workload.request import TracedRequest

    from ._whatif_stages import Replicas

ENOUGH_REQUESTS = 10_000
MOST_DRAWS = 5
"""A short log is run with up to so many draws of the lengths that it lacks, until that many requests have been run."""


def hindcast_of(study: Study, replicas: "Replicas", *, quiet: bool) -> "Hindcast | None":
    """Return how the first configuration does on the log that the traffic comes from; None for other traces.

    Raises:
        TraceError: as reading the trace.
    """
    log, summary = study.traffic.log, study.traffic.summary
    if log is None:
        return None
    from llmshed.whatif.hindcast import hindcast, mean_figures
    from llmshed.whatif.logged_figures import logged_figures, simulated_figures

    seconds = summary.duration_seconds or 1.0  # as a run counts what has no duration
    logged = logged_figures(log.tries(), seconds, inf if log.whole else seconds)
    draws = min(ceil(ENOUGH_REQUESTS / summary.requests), MOST_DRAWS) if summary.imputed else 1
    with shown("hindcast", draws, quiet=quiet) as told:

        def run(draw: int) -> "RunReport":
            requests = log.drawn(draw)
            return _run(study, requests, lambda at_seconds: told(draw + min(at_seconds / seconds, 1.0)))

        simulated = mean_figures([simulated_figures(run(draw)) for draw in range(draws)])
    return hindcast(logged, simulated, draws, tuple(_notes(study, replicas, logged)))


def _run(study: Study, requests: "Iterator[TracedRequest]", told: Callable[[float], None]) -> "RunReport":
    """Return the run of the daemon's controller at the log's own rate, with no request left out as infeasible.

    Ceilings are those that clients asked for, whatever the other runs take.
    """
    from llmshed.admission.request import Lane
    from llmshed.whatif.gates.table import OURS, build_gate
    from llmshed.whatif.setting import Objectives
    from llmshed.whatif.world import simulate

    setting = replace(study.stages[0].setting(), objectives=Objectives(dict.fromkeys(Lane, inf)))
    gate = build_gate(OURS, setting)
    return simulate(setting, gate, requests, study.clients, rng_of(study, "clients"), plan_of(study), told)


def _notes(study: Study, replicas: "Replicas", logged: "LoggedFigures") -> Iterator[str]:
    """Yield what is known to differ between what the log was written under and what is simulated."""
    from llmshed.gateway.daemon.snapshot import config_version

    stage = study.stages[0]
    version = config_version(stage.config)
    others = {name: count for name, count in logged.config_versions.items() if name != version}
    if others:
        written = ", ".join(f"{name} ({count:,} tries)" for name, count in others.items())
        yield f"the log was written under the configuration {written}, and {stage.name} is {version}"
    if logged.replicas and len(logged.replicas) != replicas.count:
        yield f"the log names {len(logged.replicas)} replicas, and {replicas.count} are simulated"
