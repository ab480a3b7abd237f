"""Traffic as values: who asks for how much, and when.

The problem: a policy is only worth what it does to traffic like the operator's own, and traces differ in what they
hold. Each reader turns lines of one kind of trace into `TracedRequest`s in order of arrival; what a trace lacks is made
up by a stated rule, with a random generator that is given, so that one seed gives one traffic. Nothing here opens a
file, and nothing holds more of a trace than a rule needs.
"""
