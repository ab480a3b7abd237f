"""The cause of an overload, from what a Prometheus kept: read in the order in which an overload occurs.

Arrivals come first, then queues, then engines; what departed first is looked at first. A signal x has departed from its
baseline b at the first instant of a run of three steps in which, in its bad direction,

    |x - m| > max(4 s, d |m|, e)      m = median of b,  s = 1.4826 x median |b - m|

with d a twentieth and e the least change of that signal that means anything. Three steps, since one may be a scrape
that came late. The median and its deviation are not moved by a few peaks in the baseline.

Whether a series y follows another one x is told by Spearman's rank correlation at lags 0..L steps, with an interval
from a moving-block bootstrap: blocks keep the dependence of neighbouring steps, without which it is far too narrow.

A cause is told by stated evidence. Each has one condition without which it is never named, and further ones that weigh;
its weight is the share of theirs that hold, of those that could be looked at. High GPU utilisation is never evidence: a
server at 90 % may be healthy or thirty seconds from exhaustion. A cause whose data are missing is not ruled out; it is
said that it was not looked at.
"""
