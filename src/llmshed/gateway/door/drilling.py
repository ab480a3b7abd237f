"""Requests of a drill: each names the degraded path that it takes, whatever rung is in force."""

from llmshed.admission.policy import PoolPolicy
from llmshed.admission.reasons import Reason
from llmshed.engines.base import BodyError
from llmshed.gateway.daemon.app import Gateway
from llmshed.gateway.door.visit import Visit
from llmshed.ladder.model import Rung
from llmshed.ladder.paths import changing, path_of

PASS_HEADER = "x-llmshed-drill"  # noqa: S105 - the name of a header
RUNG_HEADER = "x-llmshed-drill-rung"
PRIMARY = "none"
"""Stands in the header for the path without any rung."""


def drilled_rungs(gateway: Gateway, visit: Visit, pool: PoolPolicy) -> tuple[Rung, ...] | None:
    """Return the rungs that a drill has this request take, whomever they touch otherwise; None for other requests.

    Raises:
        BodyError: `forbidden` without a valid pass; `malformed` for a rung that changes no answer of this pool.
    """
    headers = visit.request.headers
    if PASS_HEADER not in headers and RUNG_HEADER not in headers:
        return None
    words, names = headers.getall(PASS_HEADER, []), headers.getall(RUNG_HEADER, [])
    if len(words) != 1 or not gateway.passes.holds(words[0], gateway.clock.now()):
        message = f"{PASS_HEADER}: only `llmshed ladder drill` chooses a rung, by a pass that it draws and that ends"
        raise BodyError(Reason.FORBIDDEN, message, PASS_HEADER)
    rungs = () if pool.ladder is None else changing(pool.ladder)
    chosen = next((rung for rung in rungs if names == [rung.name]), None)
    if chosen is None and names != [PRIMARY]:
        accepted = ", ".join((PRIMARY, *(rung.name for rung in rungs)))
        raise BodyError(Reason.MALFORMED, f"{RUNG_HEADER}: must be one of {accepted}", RUNG_HEADER)
    visit.drill = names[0]
    return () if chosen is None or pool.ladder is None else path_of(pool.ladder, chosen)
