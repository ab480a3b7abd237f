r"""How long a request would wait, told before it waits: pure arithmetic on what was seen to end.

A request that lacks n tokens and s seats now, with the queued work ahead of it counted in, waits for running answers to
end and for the prompts ahead to be let in. Nobody knows how long an answer gets; what is known is how long the answers
of its lane got, and how many tokens it must have produced since its first one. The symbols:

    c            output ceiling of a sequence; x the tokens that it has produced, by its age and the pace
    S(x)         part of the lane's answers that got longer than x tokens: a decaying histogram           (outputs.py)
    d            seconds per output token of one sequence on this replica                                 (pace.py)
    L(u | x)     length that a part u of those longer than x does not exceed: S(L) = (1 - u) S(x), at most c
    E(u)         first token + d L(u | x): when the charge comes free
    F(t)         tokens that came free until t, over all charges; half of each at E(u), half at E(1 - u)  (forecast.py)
    J(t)         of these, taken again by the waiting work ahead, what came free once more: at most that  (curve.py)
    release      least t with F(t) + J(t) >= n, the same for the seats s
    prefill      prompt tokens ahead / rate at which the prefill window lets them in
    share        1 - part of what came free that higher classes took, at least 0.02                       (share.py)
                 for a repeat also less the part that first arrivals of its tenant ask for                (own_share.py)
    f            learnt factor of lane, class and length of the wait, in 0.5 .. 4                         (factor.py)

    wait         max(release / share, prefill) x f                                                        (delay.py)

f follows the pairs of estimate and real wait, and how many of the waits told were kept, so that 90 % of real waits are
within the estimate. Refused requests teach it too: a sample of them is followed until they would have fit (ghosts.py).

Retry-After adds the room that earlier refusals of its rank were told about: W reserved tokens that drain at the release
rate m, and the V prompt tokens of the same that drain at the rate v of prompts, whichever takes longer, with a quarter
to spare:

    Retry-After  wait + 1.25 max(W / m, V / v)                                                            (promises.py)

docs/delay-estimate.md says the same for operators, with the bounds and their reasons.
"""
