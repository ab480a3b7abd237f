"""The prefill window of one replica: its rate, what is in flight, bulk's part, the engine's own re-prefills."""

from llmshed.admission.policy import ReplicaBudget, ReplicaSpec
from llmshed.admission.prefill.achieved import AchievedShare
from llmshed.admission.prefill.bucket import DebtBucket
from llmshed.admission.prefill.bulk import BulkPart
from llmshed.admission.prefill.inflight import InFlight, Prompt
from llmshed.admission.prefill.rate import MeasuredRate
from llmshed.admission.prefill.reprefill import Reprefills
from llmshed.admission.release import UNKNOWN_DECODE_SECONDS_PER_TOKEN
from llmshed.admission.request import Lane
from llmshed.admission.verdict import WindowTerms

WINDOW_SECONDS = 0.25
"""What may come at once, in seconds of the rate: a few engine steps, so that no single prompt is held back for its own
sake. With a whole second the streams that decode beside a burst lost their pace: their TPOT at the 95th percentile was
0.12 s instead of 0.05 s with the traffic of `azure_code` in `bench/goodput`, at no more goodput."""
LEAST_RATE_RATIO = 0.1
"""Of the rate, left to prompts in an estimate however many re-prefills are expected: many of their sequences will have
ended before, and a wait without end could not be told."""


class PrefillWindow:
    """What one replica has been given to prefill, and whether a prompt may follow. It decides nothing by itself.

    Args:
        spec: the replica.
        shared: whether interactive and bulk work meet on it.
        engine_share_seconds: how long the interactive lane leaves an engine from dispatch to first token.
        now: clock reading; later calls have later ones.
    """

    __slots__ = (
        "_achieved",
        "_blocking",
        "_bucket",
        "_budget",
        "_bulk",
        "_due_at",
        "_flight",
        "_newest",
        "_rate",
        "_reprefills",
    )

    def __init__(self, spec: ReplicaSpec, *, shared: bool, engine_share_seconds: float, now: float) -> None:
        """Start with a full window and nothing in flight."""
        self._budget = spec.budget
        self._blocking = spec.prefill_blocks_starts
        self._bucket: DebtBucket | None = None
        self._bulk: BulkPart | None = None
        self._rate = MeasuredRate(spec.budget.prefill_tokens_per_second)
        self._flight = InFlight(None, self._rate)
        self._reprefills = Reprefills(spec.overrun_chunk_tokens)
        self._achieved = AchievedShare(now)
        self._due_at = float("inf")
        self._newest: int | None = None
        self.renew(spec.budget, shared=shared, engine_share_seconds=engine_share_seconds, now=now)

    def renew(self, budget: ReplicaBudget, *, shared: bool, engine_share_seconds: float, now: float) -> None:
        """Put other numbers in force; what is in flight and every debt stays."""
        self._advance(now)
        rate = budget.prefill_tokens_per_second
        self._budget = budget
        self._rate.renew(rate)
        if rate is None:
            self._bucket = None
        elif self._bucket is None:
            self._bucket = DebtBucket(rate, WINDOW_SECONDS, now)
        else:
            self._bucket.renew(rate, now)
        bounds = (budget.prefill_inflight_tokens, None if rate is None else engine_share_seconds * rate)
        self._flight.most_tokens = min((bound for bound in bounds if bound is not None), default=None)
        if not shared:
            self._bulk = None
        elif self._bulk is None:
            self._bulk = BulkPart(budget.bulk, rate, blocking=self._blocking, now=now)
        else:
            self._bulk.renew(budget.bulk, rate, now)
        self._changed()

    def interactive_came(self, now: float) -> None:
        """Note that an interactive request arrived that could be served here, whatever became of it."""
        if self._bulk is not None:
            self._bulk.interactive_came(now)

    def bulk_waits(self, now: float, *, waiting: bool) -> None:
        """Note whether bulk waits that could be served here: the floor's credit grows only then."""
        if self._bulk is not None:
            self._bulk.waits(now, waiting=waiting)

    def admits(self, lane: Lane, tokens: int, now: float) -> bool:
        """Say whether a prompt of that many uncached tokens may be dispatched now."""
        self._advance(now)
        if self._bucket is not None and not self._bucket.open(now):
            return False
        bulk = self._part_of(lane)
        if bulk is None:
            return self._flight.fits(tokens)
        if bulk.under_cap(now) and self._flight.fits(tokens):
            return True
        return self.within_floor(tokens, now) and not self._flight.overfull

    def admits_beyond_flight(self, lane: Lane, tokens: int, now: float) -> bool:
        """Say the same of a prompt that may exceed what is in flight at most, unless one that did is on its way."""
        self._advance(now)
        if self._flight.overfull or (self._bucket is not None and not self._bucket.open(now)):
            return False
        bulk = self._part_of(lane)
        return bulk is None or bulk.under_cap(now) or self.within_floor(tokens, now)

    def within_floor(self, tokens: int, now: float) -> bool:
        """Say whether bulk's floor covers a prompt, which may then go though interactive work waits.

        One that the replica's cache holds whole costs the floor nothing.
        """
        return self._bulk is not None and (tokens == 0 or self._bulk.within_floor(now))

    def under_cap(self, now: float) -> bool:
        """Say whether bulk's cap leaves it anything now; always where no cap acts."""
        return self._bulk is None or self._bulk.under_cap(now)

    def ready_at(self, lane: Lane, tokens: int, now: float) -> float | None:
        """Return the earliest instant after `now` from which a prompt may be let in, or bulk's floor covers it.

        None when time alone changes nothing: only a first token or an ending can. Re-prefills that fall due until then
        put it off: ask again at that instant.
        """
        self._advance(now)
        paid_at = now if self._bucket is None else self._bucket.paid_at
        room_at = now if self._flight.fits(tokens) else self._flight.ready_at(tokens)
        bulk = self._part_of(lane)
        if bulk is None:
            return _after(now, _latest(paid_at, room_at))
        floor_at = bulk.floor_opens_at()
        below_at = now if not self._flight.overfull else self._flight.ready_at(0)
        by_cap = _latest(paid_at, room_at, bulk.cap_opens_at(now))
        by_floor = _latest(paid_at, floor_at, below_at)
        return _after(now, _earliest(by_cap, by_floor), floor_at)

    def take(
        self, key: int, lane: Lane, tokens: int, now: float, *, streamed: bool, output_ceiling_tokens: int
    ) -> None:
        """Charge a prompt that is dispatched, whether or not the window admits it.

        Raises:
            ValueError: the request is in flight here already.
        """
        self._advance(now)
        prompt = Prompt(key, lane, tokens, now, streamed, output_ceiling_tokens)
        self._flight.add(prompt)
        bulk = self._part_of(lane)
        if bulk is not None:
            prompt.bulk = bulk.take(tokens, now)
        if self._bucket is not None:
            self._bucket.take(tokens, now)
        self._newest = key
        self._achieved.count(tokens, now, bulk=lane is Lane.BULK)
        self._changed()

    def first_token(self, key: int, now: float) -> None:
        """Note that a prompt's prefill is over; unknown requests are ignored."""
        self._advance(now)
        for prompt in self._flight.first_token(key, now):
            self._decodes(prompt, now)
        self._changed()

    def end(self, key: int, now: float) -> None:
        """Note that a request is over, however; unknown ones are ignored."""
        self._advance(now)
        self._flight.end(key, now)
        self._reprefills.stop(key)
        self._changed()

    def refund(self, key: int, now: float) -> None:
        """Give back the tokens of a prompt that the replica never read; one that is not in flight is ignored.

        The rate gets back those of the newest only. A later one was let in when their debt was paid off by time: given
        back after that they would let in more than the rate, and kept they cost it no more than a full window.
        """
        self._advance(now)
        self._reprefills.stop(key)
        prompt = self._flight.unread(key)
        self._changed()
        if prompt is None:
            return
        if self._bucket is not None and key == self._newest:
            self._bucket.give_back(prompt.tokens)
        if self._bulk is not None and prompt.bulk is not None:
            self._bulk.give_back(prompt.bulk)
        self._achieved.count(-prompt.tokens, now, bulk=prompt.lane is Lane.BULK)

    def wait_seconds(
        self,
        lane: Lane,
        ahead_tokens: int,
        tokens: int,
        now: float,
        share: float = 1.0,
        bulk_ahead_tokens: int = 0,
    ) -> float:
        """Return the predicted time until a prompt is let in behind `ahead_tokens` of prompts that go first.

        `share` (more than 0, at most 1) is the part of the window that higher classes leave. Bulk's cap is its own:
        only those `bulk_ahead_tokens` that are bulk's are ahead there.
        """
        if ahead_tokens <= 0 and self.admits(lane, tokens, now):
            return 0.0
        self._advance(now)
        seconds = self._flight.seconds_until(ahead_tokens, tokens, now)
        if self._bucket is not None:
            rate = self._bucket.tokens_per_second
            left = max(rate - self._reprefills.tokens_per_second, LEAST_RATE_RATIO * rate)
            seconds = max(seconds, self._bucket.seconds_until(ahead_tokens, now) * rate / left)
        bulk = self._part_of(lane)
        if bulk is None:
            return seconds / share
        cap_seconds = bulk.cap_seconds(bulk_ahead_tokens, now)
        return max(seconds, cap_seconds) if cap_seconds > 0 else seconds / share

    @property
    def idle(self) -> bool:
        """Say whether no prompt is in flight, as far as was told."""
        return self._flight.tokens == 0

    def busy_seconds(self, now: float) -> float:
        """Return how long the replica still works on what is in flight, at the measured rate."""
        self._advance(now)
        return self._flight.busy_seconds(now)

    def prefill_seconds(self, tokens: int) -> float:
        """Return how long the replica works on that many uncached tokens at the measured rate."""
        return tokens / self._rate.tokens_per_second

    @property
    def most_tokens_per_second(self) -> float:
        """Return the rate at which prompts are let in at most.

        What first tokens show, the profile's until they show one, and never above the profile's where there is one.
        """
        measured = self._rate.tokens_per_second
        return measured if self._bucket is None else min(measured, self._bucket.tokens_per_second)

    def terms(self, now: float) -> WindowTerms:
        """Return the numbers that decide, for a verdict."""
        self._advance(now)
        most = self._flight.most_tokens
        return WindowTerms(
            tokens_per_second=None if self._bucket is None else self._bucket.tokens_per_second,
            level_tokens=0.0 if self._bucket is None else self._bucket.level(now),
            inflight_tokens=self._flight.tokens,
            inflight_limit_tokens=None if most is None else int(most),
            bulk_level_tokens=None if self._bulk is None else self._bulk.cap_level(now),
            bulk_credit_tokens=0.0 if self._bulk is None else self._bulk.credit(now),
        )

    def bulk_share(self, now: float) -> float | None:
        """Return the part of the prompt tokens of the last minute that were bulk's; None when there were none."""
        return self._achieved.ratio(now)

    def check(self) -> list[str]:
        """Return the invariants that do not hold: sums equal recounts."""
        return [*self._flight.check(), *self._reprefills.check()]

    def _part_of(self, lane: Lane) -> BulkPart | None:
        return self._bulk if lane is Lane.BULK else None

    def _advance(self, now: float) -> None:
        """Do what fell due: prefills that nobody sees end, and re-prefills."""
        if now < self._due_at:
            return
        for prompt, end in self._flight.take_predicted(now):
            self._decodes(prompt, end)
        for at, tokens in self._reprefills.take_due(now):
            if self._bucket is not None:
                self._bucket.take(tokens, at)
        self._changed()

    def _changed(self) -> None:
        """Note when something falls due next, so that a question before that asks nobody."""
        self._due_at = min(self._flight.next_predicted(), self._reprefills.next_due())

    def _decodes(self, prompt: Prompt, at: float) -> None:
        seconds_per_token = self._budget.decode_seconds_per_token or UNKNOWN_DECODE_SECONDS_PER_TOKEN
        self._reprefills.start(prompt.key, prompt.tokens, prompt.output_ceiling_tokens, seconds_per_token, at)


def _latest(*instants: float | None) -> float | None:
    """Return the last of the instants; None when one never comes."""
    last = float("-inf")
    for instant in instants:
        if instant is None:
            return None
        last = max(last, instant)
    return last


def _earliest(*instants: float | None) -> float | None:
    """Return the first of the instants that come; None when none does."""
    return min((instant for instant in instants if instant is not None), default=None)


def _after(now: float, *instants: float | None) -> float | None:
    """Return the first of the instants that lie ahead; None when none does."""
    return min((instant for instant in instants if instant is not None and instant > now), default=None)
