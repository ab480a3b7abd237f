"""A hindcast as a table and as the sentence that says whether anything is proposed on it."""

from llmshed.rendering.figures import UNKNOWN, measured, share
from llmshed.rendering.page import Table
from llmshed.whatif.compare import Unit
from llmshed.whatif.hindcast import LEAST_SEEN, MOST_DIFFERENCE, Hindcast, HindcastMeasure, HindcastRow

_MEASURES = {
    HindcastMeasure.REFUSED_SHARE: ("refused", Unit.SHARE),
    HindcastMeasure.TTFT_P95: ("TTFT p95", Unit.SECONDS),
    HindcastMeasure.OUTPUT_RATE: ("output tokens/s", Unit.PER_SECOND),
}


def hindcast_table(hindcast: Hindcast) -> Table:
    """Return each measure of each lane as logged and as simulated, with the verdict below."""
    rows = tuple(
        (
            _label(row),
            measured(_MEASURES[row.measure][1], row.logged),
            measured(_MEASURES[row.measure][1], row.simulated),
            UNKNOWN if row.difference is None else share(row.difference),
        )
        for row in hindcast.rows
    )
    simulated = "simulated" if hindcast.draws == 1 else f"mean of {hindcast.draws} runs"
    columns = ("", "log", simulated, "off by")
    return Table("Hindcast: the log against its own traffic", columns, rows, verdict(hindcast))


def verdict(hindcast: Hindcast) -> str:
    """Return whether the run foretold what happened, in one sentence or two."""
    worst = hindcast.worst
    if worst is None:
        return f"No proposal is made: no lane of the log has {LEAST_SEEN} tries, so the replica cannot be judged by it."
    off = f"off by {share(hindcast.largest_difference)} at most ({_label(worst)})"
    if hindcast.holds:
        return f"The hindcast is {off}, within the {share(MOST_DIFFERENCE)} that a proposal may stand on."
    return (
        f"No proposal is made: the hindcast is {off}, above {share(MOST_DIFFERENCE)}. The replica, their number or the"
        " configuration is not what the log was written under."
    )


def _label(row: HindcastRow) -> str:
    return f"{row.lane.value}: {_MEASURES[row.measure][0]}"
