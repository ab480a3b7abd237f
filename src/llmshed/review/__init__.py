"""How a gateway did over days: what was refused and served, who waited longest, what stood idle, what was reserved.

Everything is asked of a Prometheus at one instant t, over the span s that ends there. Counters are told by

    increase(c[s])

which follows resets, and distributions by histogram_quantile over increase(c_bucket[s]), so that each request has the
same weight whenever it came. What holds for a part of the time is the mean over the steps of the span of a condition
that is 0 or 1:

    idle share of a pool = avg_over_time((sum of its active tokens == bool 0)[s:step])

Nobody counts the tokens of what was refused for each reason. They are estimated as the refused requests times the mean
size, prompt and asked output, of the requests of their lane, and are called an estimate wherever they are shown. What
is not known is None, never 0.
"""
