"""A load generator that tells the truth about waits, its own included.

The problem: a generator that sends its next request only when an answer has come slows down with what it measures, and
then reports short waits of few requests (coordinated omission). So requests are planned first. With p the instant at
which a request was due, s when its first byte was written, t(1..n) when its events with output arrived, and e its end:

    lateness = s - p        TTFT = t(1) - p        ITL = t(i+1) - t(i)        end to end = e - p
    TPOT = (t(n) - t(1)) / (output tokens - 1)

All of them begin with p, so a request that the generator itself sent late counts as one that waited. What the generator
did wrong is measured beside it: lateness, the lag of its event loop, and the share of a core that the loop took. A
result under which one of these is more than the figures can bear is marked `generator_limited`, with the reason.

Open loop (`open_loop`): requests come as planned, whatever becomes of the others. Closed loop (`driver`): what comes
next is decided by `calibration/`, which holds reserved tokens in flight. Prompts are random text of an exact count.
"""
