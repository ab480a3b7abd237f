"""What one replica carries, found by driving it: events in, actions out.

The problem: a budget in tokens is only as good as the number that it starts from, and an engine's own figure (its KV
cache) says nothing of the objectives. So reserved tokens in flight are held at a level until the replica is steady, and
the level is raised until an objective breaks. Four phases follow an idle one: the KV sweep, in which outputs run to
their ceiling; the prefill rate, with short outputs; the hard cap, with short contexts; and the mix as it is, under all
three. Symbols: L a level, B_i and P_i the bounds of request i (the engine's share of its lane's TTFT objective, and its
TPOT objective), a = 0.05 the share that may be beyond.

    late(L) = share of requests i sent at L with TTFT_i > B_i
    slow(L) = share of requests i with TPOT_i > P_i, where L is the mean level over the life of i
    knee    = greatest L with late(L) <= a and slow(L) <= a

Both shares can only grow with L, so each is fitted by isotonic regression over all that was observed near the knee
(`isotonic`), and the knee is where the fit crosses a. What is reported is its lower confidence bound, of a bootstrap
over blocks of time (`observations`).

A level of requests that began together would be steady only after a few answers. Here it is filled with requests that
are half done: what they would have produced stands in their prompt, and only the rest of their output is still asked
for. `search` chooses the levels, `dwell` says when enough was seen of one.
"""

from llmshed.calibration.machine import Calibration
from llmshed.calibration.plan import Objective, Plan, Shape
from llmshed.calibration.results import Phase, Progress, Result

__all__ = ["Calibration", "Objective", "Phase", "Plan", "Progress", "Result", "Shape"]
