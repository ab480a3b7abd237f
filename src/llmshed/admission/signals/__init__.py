r"""What a replica says of itself, and what it is allowed to change: it may only make the budget smaller, for a while.

The ledger knows what was lent; it cannot know that something else uses the replica, that the engine preempts, or that
it has stopped. Signals tell that late, rarely, and sometimes falsely, so they act on one number only:

    f            factor of the safe budget, 0.25 <= f <= 1; 1 when nothing is wrong
    bad signal   f <- max(0.25, 0.7 f), at most once in 10 s
    no bad one   f <- min(1, f + 0.05) every 10 s
    silence      what was heard counts for 60 s after it was heard

So a replica whose signals are bad for ever keeps a quarter of its budget, and at least room for one request of the
largest size; and one that nothing is heard of any more has its whole budget back within 60 + 15 x 10 = 210 s. A signal
without a timed way out would lock a healthy replica out as soon as its metrics lie or stop.

GPU utilisation is no signal: it is high on a healthy replica, and low on one that is stuck.
"""
