"""What Prometheus and Grafana are given to watch gateways by: rules, alerts and a dashboard, from tables in code.

They follow the order in which an overload occurs: arrivals, queues, engine. Two figures are made here and nowhere else.

**Offered demand.** The reserved tokens a second that clients want, whether or not they are let in, so that a gateway
which refuses does not look like one that is idle. With r the rate of arrivals, of which f come for the first time:

    offered = (rate of input tokens + rate of output ceilings) / (r / f)

A repeat is the echo of a refusal and no demand. What was refused before it was counted is not in it.

**Demanded tokens.** By Little's law what has to be held at once to serve that: offered x mean time from arrival to
end of what is served. Held against safe budgets it says how many replicas the demand needs, which is what scales them.

Burn rates compare the share of requests that missed their objectives with the share that may; an alert needs a long
window, by which it is sure, and a short one, by which it ends soon after the trouble does.
"""
