r"""Whether a replica may take a request: pure decisions, events in, actions out.

The problem. A GPU replica keeps every admitted sequence in its KV cache until that sequence ends, and nobody knows
beforehand how long it will get. Counting requests therefore says nothing about the room that is left. What is known at
the door is the exact number of input tokens and the most output that the request may produce, so the door lends tokens:

    r            one request; it runs as s sequences (n, best_of, lists of prompts)
    i_k, c, o_k  input tokens of sequence k, output ceiling, the engine's overrun beyond the ceiling
    reservation  R = sum over k of (i_k + c + o_k)

    G            gross ceiling of the replica, measured in reserved tokens
    g            guard band ratio, the part of G that policy never lends
    safe budget  B = G - g G
    A            active tokens: the reservations that run, and those of gone clients that the engine may still hold
    Q            tokens of queued work that would be served before r
    headroom     H = B - A - Q
    fits         R <= H  and  active sequences + s <= hard cap

Worked example of the source: 96,000 - 9,600 - 58,000 - 8,000 = 20,400; 14,000 + 4,000 fits, 19,000 + 4,000 does not.

`AdmissionController.handle(event, now)` returns the actions to perform and `next_wakeup()` the time at which it wants a
`Tick`. It never waits and never reads a clock, so the daemon, the tests and simulated time run the same code.
"""
