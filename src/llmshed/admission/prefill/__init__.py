r"""When a prompt may be handed to a replica: the prefill window, and bulk's part of it.

The problem. A sum of reserved tokens bounds the KV cache, not latency: a replica with much free cache that gets ten
long prompts at once stalls every stream that it serves. And an engine works on prompts in the order in which it got
them, so order exists only while work waits here. Prompts are therefore let in at the rate at which running streams keep
their pace, and few of them are on their way at once.

    r        prefill rate of the budget, tokens a second       W   window: what may come at once, 0.25 s of r
    L(t)     level; grows by r a second up to W
    F        tokens in flight: let in, without a first token
    F_max    least of the budget's in-flight tokens and engine share x r, where they are known

    a prompt of i tokens goes when    L >= 0  and  (F = 0  or  F + i <= F_max)
    and then                          L <- L - i,   F <- F + i

The holder of the replica's shadow reservation goes when L >= 0 and F <= F_max, since smaller prompts would keep less
than its own room in flight for ever. L may fall below zero (debt), since one prompt can exceed a window: over T seconds
at most W + r T and one prompt come. The engine's own re-prefills (TGI from 3.1.1: input and output so far, after each
1,024 output tokens) are taken from L when they are due.

Bulk beside interactive work has a cap and a floor, ratios of r:

    cap      K(t), as L, at cap r; binds while interactive work came within the last 5 s
    floor    C(t), grows at floor r up to 0 and, while bulk waits, above 0 up to what 10 s bring
    bulk goes when                    L >= 0  and  (K >= 0 and room in flight   or   C >= 0 and F <= F_max)
    and then                          K <- K - i,   C <- max(C - i, min(C, -i))

C is a credit with debt too: any prompt goes while the floor is not in debt, and the floor rests until it is paid off. A
prepaid credit would let short prompts use it up before a long one at the head is ever covered. What the cap lets in
beyond the floor costs no more than one prompt of credit, so a calm hour is not held against bulk afterwards. So bulk
that always waits gets at least floor r T less one prompt, and while interactive work always comes at most cap r T,
W, what C holds and two prompts.

The measured rate m is tokens by seconds of busy time: between the first tokens of prompts behind each other the engine
worked on nothing else. A prompt behind n tokens of prompts waits

    max((n - L) / (r - re-prefills), min(F + n, F + n + i - F_max) / m), at least 0

divided by the share that higher classes leave. Bulk that its cap holds up waits for (n - K) / (cap r) if that is
longer, and no share divides that, since the cap is its own.
"""
