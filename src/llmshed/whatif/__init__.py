"""Hours of traffic in seconds: a gate, simulated replicas and clients on one virtual clock.

The problem: an operator asks what another profile, budget or policy would have done to yesterday's traffic. Here the
unchanged `AdmissionController`, or another gate, meets that traffic in front of simulated replicas; nothing waits and
nothing is drawn but from a generator that is given, so one seed gives one result to the last digit.

Words: a request is *good* when its first token came within max(1 s, 5 x its TTFT on an idle replica) and, after it, its
mean time per token stayed within the TPOT objective. Goodput is the rate of good requests, or of their tokens. Requests
that an idle replica could not serve within their objective are *infeasible*: counted, and left out. Attainment is the
share of good among all feasible ones, refused ones included.
"""
