"""Retries in a decision log, folded into the request that they are tries of.

The problem: under overload a log holds one request many times, once for each try, and under another configuration it
would have been tried more or less often. So the first try stands for the request, and a client model makes the retries
anew. The rule: a refused request that comes again from the same tenant with the same fingerprint, within twice the wait
that it was told and at least a minute, is a retry. Where lines have no fingerprint, prompts of the same lengths and
leading blocks with the same ceiling and session stand for it. A client that counts its tries must count upwards: one
that says it is a first try is believed.

What became of the last try is known of the request: if that one was served, its length is.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from llmshed.workload.logged import LoggedRequest

LEAST_WINDOW_SECONDS = 60.0
WAITS = 2.0
"""Clients add jitter to the wait that they were told; twice of it is not exceeded by any that honours it."""
LONGEST_CHAIN_SECONDS = 3600.0
"""From a first try on; a later one begins anew. Requests are held so long at most."""

_Key = tuple[object, ...]


@dataclass(slots=True, eq=False)
class _Chain:
    """A request and its tries so far; `open_until` is when the next would come too late."""

    key: _Key
    first: LoggedRequest
    last: LoggedRequest
    open_until: float

    def is_over(self, now: float) -> bool:
        return now > min(self.open_until, self.first.time_seconds + LONGEST_CHAIN_SECONDS)

    def may_go_on_with(self, request: LoggedRequest) -> bool:
        told, before = request.retry_count, self.last.retry_count
        counts_up = told is None or told > (0 if before is None else before)
        return counts_up and request.time_seconds >= self.last.ended_seconds and not self.is_over(request.time_seconds)

    def whole(self) -> LoggedRequest:
        """Return the request: it came with its first try and ended as its last."""
        return replace(self.last, time_seconds=self.first.time_seconds, line=self.first.line)


class RetryFolder:
    """Finds the tries of each request among logged ones.

    Attributes:
        folded: retries found so far.
    """

    def __init__(self) -> None:
        """Start with nobody waiting."""
        self._waiting: deque[_Chain] = deque()
        self._open: dict[_Key, list[_Chain]] = {}
        self.folded = 0

    def first_tries(self, requests: Iterable[LoggedRequest]) -> Iterator[LoggedRequest]:
        """Yield each request once, in the order of first tries, when its last try is known.

        Args:
            requests: every try, in order of arrival.
        """
        for request in requests:
            self._take(request)
            while self._waiting and self._waiting[0].is_over(request.time_seconds):
                yield self._let_go()
        while self._waiting:
            yield self._let_go()

    def _take(self, request: LoggedRequest) -> None:
        key = _key(request)
        chain = next((one for one in self._open.get(key, ()) if one.may_go_on_with(request)), None)
        if chain is None:
            chain = _Chain(key, request, request, _open_until(request))
            self._waiting.append(chain)
        else:
            self.folded += 1
            self._close(chain)
            chain.last, chain.open_until = request, _open_until(request)
        if request.was_refused:
            self._open.setdefault(key, []).append(chain)

    def _close(self, chain: _Chain) -> None:
        """Let no further try come to a chain."""
        others = self._open.get(chain.key, [])
        if chain in others:
            others.remove(chain)
            if not others:
                del self._open[chain.key]

    def _let_go(self) -> LoggedRequest:
        chain = self._waiting.popleft()
        self._close(chain)
        return chain.whole()


def _key(request: LoggedRequest) -> _Key:
    if request.fingerprint is not None:
        return request.tenant, request.fingerprint
    shape = (request.prompt_tokens, request.copies, request.asked_output_tokens, request.prefix_blocks)
    return request.tenant, request.session, *shape


def _open_until(request: LoggedRequest) -> float:
    """Return when a retry of a request would come too late; before any arrival where it was served."""
    if not request.was_refused:
        return 0.0
    return request.ended_seconds + max(WAITS * (request.retry_after_seconds or 0.0), LEAST_WINDOW_SECONDS)
