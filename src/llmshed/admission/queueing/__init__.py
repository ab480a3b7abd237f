r"""Who waits before whom: the queue of one pool and lane.

The problem. What does not fit now waits, and room comes free in pieces. First come, first served gives it all to the
tenant that sends most; a count of requests lets one long prompt weigh as much as a short one. So each tenant of a lane
is counted the tokens that it was served, by its weight, and the one that was served least goes first:

    w_t          weight of tenant t
    R(r)         reservation of request r, in tokens
    c_t          virtual counter of t, in tokens per unit of weight
    dispatch     c_t += R / w_t                    also of work that never waited
    end          c_t += (used - R) / w_t           what was reserved and not used is given back; what was dispatched
                                                   before t's last return pays only what c_t then exceeded the min by
    return       c_t  = max(c_t, min c over those that wait)
                                                   silence banks no credit
    nobody waits c    = 0 for all                  nobody was short of service, as in any fair queueing's idle time

    order        by class, in a class by c_t, in a tenant by arrival: first continuing conversations and new ones that
                 have waited for half of the lane's residence, then the other new ones. Equal c_t: heads likewise

For two tenants f, g that wait all the time, with U the largest R / w, what they were served differs by

    | S_f / w_f - S_g / w_g |  <=  2 U

and no work-conserving scheme that serves requests whole can promise less than half of that. Each class has its own
counters, since a lower class that starves must not lend its level to those that return to a higher one; a dispatch
counts in all.

Before a newcomer of tenant t, with own work O of t that it stands behind, stand

    u      = c_t + O / w_t                                   its turn, c_t as it would be lifted
    ahead <= O + min(all that the others have, sum over the others of w_j (u - min c_j) + their largest R)

At a full queue a newcomer displaces the newest of the lowest class below its own, else in its own class the newest of
the tenant with the largest waiting sum of R / w_t, if that exceeds what its own tenant's would become.

Sources: Sheng et al., "Fairness in Serving Large Language Models" (OSDI 2024, arXiv 2401.00588), the counters, the lift
and the bound. Classes, continuing conversations, settlement to real usage and displacement are this project's own.
"""
