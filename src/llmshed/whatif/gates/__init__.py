"""The policies that llmshed is compared with, each a gate of its own.

The problem: "better than nothing" says little. Here stand the ways in which LLM fleets are guarded today, built fairly,
and an oracle that knows what no gateway can know and so shows what was there to be had.

What no engine could serve is refused by all of them alike: an unknown tenant, an intent that its key does not allow, a
lane without a pool, a prompt beyond the model's context. Pools, classes and output ceilings are those of the policy
too, so that gates differ in what they do with work that could be served. Bounds of lanes bind llmshed alone.

`rule.py` is what one policy decides, `gate.py` the gate around any rule, `books.py` who is where, `table.py` the names.
"""
