"""One file for each kind of trace: bytes in, `TracedRequest`s out, lazily and in order of arrival.

A trace is met with suspicion. Lines are bounded, bytes are UTF-8, numbers are plain and within bounds, arrivals never
go back; whatever breaks this raises `TraceError` with its line and what is accepted, and nothing else is ever raised.
"""
