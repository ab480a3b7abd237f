"""A signal's course in a few characters."""

import math
from statistics import mean

from llmshed.diagnosis.track import Track

_BLOCKS = "▁▂▃▄▅▆▇█"
_GAP = " "


def sparkline(track: Track, characters: int) -> str:
    """Return the course of a signal: each character the mean of its part, from nothing to the highest mean."""
    length = len(track.values)
    parts = [
        [
            value
            for value in track.values[place * length // characters : (place + 1) * length // characters]
            if not math.isnan(value)
        ]
        for place in range(characters)
    ]
    means = [mean(part) if part else math.nan for part in parts]
    highest = max((value for value in means if not math.isnan(value)), default=0.0)
    return "".join(_GAP if math.isnan(value) else _block(value, highest) for value in means)


def _block(value: float, highest: float) -> str:
    if highest <= 0:
        return _BLOCKS[0]
    return _BLOCKS[min(len(_BLOCKS) - 1, max(0, round(value / highest * (len(_BLOCKS) - 1))))]
