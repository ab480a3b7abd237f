"""A drill: cases that are sent through the primary and each degraded path of a pool, and what their answers are worth.

    case i, path k  ->  answer a(i, k)  ->  result r(i, k) = least of what its checks find, 0 to 1

What follows from the results is arithmetic (`llmshed.ladder.evaluation`); here they are got. Checks that a pattern, a
schema or a program of somebody else's could hold up run outside of this process, each within a time.
"""
