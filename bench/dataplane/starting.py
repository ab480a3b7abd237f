"""How long the command line takes to start, beside an empty Python; `bench/start.py` measures it."""

import start
from dataplane.rig import LLMSHED, Rig

PYTHON = "python"


def measure_start(rig: Rig) -> None:
    """Measure `llmshed --help`; the rounds are those of `bench/start.py`."""
    milliseconds = start.figures()
    rig.figures.note("start", PYTHON, 1, wall_ms=milliseconds[start.BARE])
    rig.figures.note("start", LLMSHED, 1, wall_ms=milliseconds[start.HELP])
    rig.say(f"start: {rig.figures.ratio('start', LLMSHED, PYTHON, 'wall_ms')} of an empty Python")
