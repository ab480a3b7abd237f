"""Five promises about who is refused, who waits and what is charged, held against a gate's own words.

A gate is watched from outside: events in, actions out, and a count of charges and waiting requests of its own, so that
a fault in a controller's books is no excuse for what it did. Requests have a place in the order of service, their
*rank*: interactive classes first, then those of bulk.

**Floor.** While an interactive request waits, bulk gets no more than its floor where that request could have run. For
one that came at a and is refused for tokens or prefill, each bulk dispatch at t since then must have left

    bulk's reserved tokens <= floor ratio x safe budget, unless no other bulk ran there
    bulk's prompts since a <= floor ratio x prefill rate x (t - a) + one prompt

where *one prompt* is the largest of bulk that was seen, since what the floor owes may cover it at once.

**Priority.** No refusal of a rank is one that removing lower ranks would have cured. With all that waits counted as
ahead of it the request does not fit; without the lower ranks among those that wait, and without what was dispatched of
them since it came, it would. Who comes back before the time that it was told is given the old reason, whatever room
there is, and not judged. Excepted are replicas that prompts may keep busy, bulk inside its floor, what was dispatched
before it came, and whoever may hold a shadow reservation: a request that has waited for half its longest wait, or bulk
whose floor covers it.

**Idle.** No replica stands idle for longer than a second and the time of the longest prompt, which a prefill window may
still owe, while a request waits that it could hold. Where only bulk waits on a shared replica that time is the one of
bulk's largest prompt at the rate of its floor.

**Rungs.** While a rung sheds a rank in a pool, no work of a lower rank is taken there, at once or to wait, that needs
no more tokens and seats than what was shed.

**Ledger.** The active tokens on which a dispatch was decided are the sum of the reservations that were told for that
replica and not given back, and each is given back whole.
"""
