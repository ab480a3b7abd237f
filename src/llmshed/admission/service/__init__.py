"""Who goes next, and whether it is worth waiting: queues, prefill window, shadow reservation and delay estimate.

A request r of service rank k (interactive classes first, then those of bulk) on a replica:

    A, B       active tokens and safe budget; S what is kept for the holder of the shadow reservation, if that is not r
    starts     R <= B - A - S, seats likewise, the prefill window admits its prompt, bulk within its part of B,
               nobody of a rank before k waits (bulk within its floor excepted), and who waits of rank k does not fit
    waits      its delay estimate is within the lane's residence and its own deadline, and the queue has room
    refused    else, by the first of: deadline, seats, room of the queue, residence

Whenever something came free, one who waited left, or time alone changed something (`look_at`), the ranks are tried in
order, and before a newcomer is judged. So one that fits passes only those who were tried and do not.
"""
