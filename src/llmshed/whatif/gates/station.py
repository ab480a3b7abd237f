"""One replica as the oracle sees it: what was sent there, when each will have its first token, who has time to spare.

Prompts are sent in groups, each of which fills at most one step, so that the order in which they leave the oracle is
the order in which they are computed, and no decision is taken before it has to be. The group that was sent last *forms*
until the step in progress ends: until then more may join it. The forecast of its first token is

    start = end of the step in progress, or of the groups before it if that is later
            + one decode step of TGI after a prompt, since it decodes once between two looks at its queue
    first token = start + time of the steps that all prompts of the group fill

Before the group come the prompts that TGI computes anew at each 1,024 tokens of an answer, of those who are back in
its queue by now.

Of a prompt that a prefix cache knows only the rest is computed. What it knows is asked for at each forecast; whoever
ends before the prompt's turn may leave more of it there. So the forecast is an upper bound to within a step: prompts
that are cached by then, or were begun with the group before, only come sooner.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf

from llmshed.simulation.model import ReplicaModel
from llmshed.whatif.gates.engine_facts import Batch, EngineFacts, Repeat
from llmshed.whatif.gates.hold import Hold
from llmshed.whatif.gates.passenger import Passenger
from llmshed.whatif.gates.prompts import NO_WORK, PromptWork, prompt_work


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would come of sending a passenger now.

    Args:
        work: what of its prompts would be computed.
        starts_at: when the step would begin in which its prompt is computed.
        first_token_at: when its first token would come.
        stall_seconds: by how much those that decode would be late through all prompts sent, this one included.
        group_stall_seconds: the part of it that comes of the group, which also holds up those before it.
        retry_at: earliest instant at which the engine would have room for it in a step; None when it has now.
    """

    work: PromptWork
    starts_at: float
    first_token_at: float
    stall_seconds: float
    group_stall_seconds: float
    retry_at: float | None


class Station:
    """One replica and its passengers."""

    def __init__(self, facts: EngineFacts, model: ReplicaModel) -> None:
        """Start empty."""
        self._facts = facts
        self._model = model
        self._ahead: dict[int, Passenger] = {}
        self._decoding: dict[int, Passenger] = {}
        self._repeating: dict[int, Passenger] = {}
        self._forming: list[Passenger] = []
        self._forming_until = -inf
        self._group_ends_at = -inf
        self._started_ends_at = -inf
        self._stall_seconds = 0.0
        self._group_stall_seconds = 0.0
        self._decoding_sequences = 0
        self._decoding_tokens = 0
        self.hold = Hold(facts)

    def __len__(self) -> int:
        """Return the passengers on board."""
        return len(self._ahead) + len(self._decoding)

    @property
    def largest_tokens(self) -> int:
        """Return the true tokens of the largest passenger on board; 0 without any."""
        return max((one.true_tokens for one in (*self._ahead.values(), *self._decoding.values())), default=0)

    def has_room(self, passenger: Passenger, forecast: Forecast, level_tokens: int) -> bool:
        """Say whether level, the engine's own limits and KV leave room; an empty replica takes anything."""
        if not len(self):
            return True
        if sum(one.input_tokens for one in self._ahead.values()) >= self._facts.most_unanswered_tokens:
            return False
        return self.hold.has_room(passenger, forecast.work, level_tokens)

    def forecast(self, passenger: Passenger, now: float) -> Forecast:
        """Return what would come of sending a passenger now; changes nothing that it depends on."""
        batch = self._batch()
        boundary = self._boundary(now, batch)
        self._roll(boundary)
        back = self._back_in_queue()
        prompts_run = self._started() or back.tokens > 0
        if not self._model.queue_size and back.tokens <= self._room(batch):
            back = NO_WORK  # they are in the step in progress
        again = back + self._coming_back(self._decodes_until(boundary, now, batch) + (1 if prompts_run else 0))
        start = self._start(boundary, batch, prompts_run=prompts_run)
        work = self._work(passenger)
        group = sum((one.work for one in self._forming), work + again)
        together = self._facts.prefill(group, batch)
        retry_at = None
        if self._forming and (group.tokens > self._room(batch) or self._harms_group(start + together.seconds)):
            retry_at = self._forming_until
        elif self._started() and not self._forming and self._started_ends_at > boundary + self._pause(batch):
            retry_at = self._started_ends_at
        under_way = max(self._started_ends_at - boundary, 0.0) if self._started() else 0.0
        return Forecast(
            work, start, start + together.seconds, under_way + together.stall_seconds, together.stall_seconds, retry_at
        )

    def worth_ratio(self, passenger: Passenger, forecast: Forecast) -> float:
        """Return how much a passenger brings for what it costs here; see `OracleLevel`."""
        return self._facts.worth_ratio(
            passenger.true_tokens, passenger.output_tokens, passenger.sequences, forecast.work, self._batch()
        )

    def spare_from(self, passenger: Passenger, forecast: Forecast, now: float) -> float | None:
        """Return None if nobody who decodes misses its pace by the passenger, else when that may have changed.

        Each one's pace is a line to be at by the last token: first token + (tokens - 1) x objective. Without further
        prompts it ends at the end of the step in progress + (tokens left - 1) x decode step + prompts computed anew
        until then. What lies between is its spare time; one that has none even without the passenger is lost and holds
        nobody up. Those whose prompt is being computed have all of their spare time, and the group to come before them.
        """
        batch = self._batch(passenger)
        step = self._facts.decode_seconds(batch)
        own = [(one.after_tokens, self._facts.prefill(one.work, batch).stall_seconds) for one in passenger.repeats]
        pace = step + _sum_within(own, passenger.output_tokens) / max(passenger.output_tokens - 1, 1)
        if self._decoding and passenger.output_tokens > 1 and pace > passenger.tpot_seconds:
            return self._first_end(step, now)
        at = self._model.next_step_at
        anchor = now if at is None else at
        others = self._stalls_to_come(batch)
        again: float | None = None
        for one in self._ahead.values():
            spare = (one.output_tokens - 1) * (one.tpot_seconds - step)
            late = one.output_tokens > 1 and self._group_stall_seconds <= spare < forecast.group_stall_seconds
            if late and one not in self._forming:
                again = max(again or 0.0, self._started_ends_at)
        for one in self._decoding.values():
            left = one.output_tokens - self._model.output_tokens(one.key)
            if one.output_tokens < 2 or left < 1 or one.first_token_at is None:
                continue
            ends_at = anchor + (left - 1) * step + _sum_within(others, left)
            spare = one.first_token_at + (one.output_tokens - 1) * one.tpot_seconds - ends_at
            stall = forecast.stall_seconds + _sum_within(own, left)
            if self._stall_seconds <= spare < stall:
                gains = one.tpot_seconds / step - 1
                wait = (stall - spare) / gains if gains > 0 else inf
                again = max(again or 0.0, min(now + wait, ends_at))
        return None if again is None else max(again, now + step / 2)

    def board(self, passenger: Passenger, forecast: Forecast, now: float) -> None:
        """Note that a passenger was sent, as forecast."""
        if not self._forming:
            self._forming_until = self._boundary(now, self._batch())
        self._forming.append(passenger)
        self._ahead[passenger.key] = passenger
        passenger.work = forecast.work
        self.hold.join(passenger)
        self._group_ends_at = forecast.first_token_at
        self._stall_seconds = forecast.stall_seconds
        self._group_stall_seconds = forecast.group_stall_seconds
        for one in self._forming:
            one.forecast_at = forecast.first_token_at

    def first_token(self, key: int, now: float) -> None:
        """Note a first token; one who is no longer on board is ignored."""
        passenger = self._ahead.pop(key, None)
        if passenger is None:
            return
        passenger.first_token_at = now
        self._decoding[key] = passenger
        if passenger.repeats:
            self._repeating[key] = passenger
        self._decoding_sequences += passenger.sequences
        self._decoding_tokens += passenger.true_tokens
        self._left_ahead(passenger)

    def leave(self, key: int) -> None:
        """Let a passenger go, whatever the reason."""
        passenger = self._ahead.pop(key, None)
        if passenger is not None:
            self._left_ahead(passenger)
        else:
            passenger = self._decoding.pop(key)
            self._repeating.pop(key, None)
            self._decoding_sequences -= passenger.sequences
            self._decoding_tokens -= passenger.true_tokens
        self.hold.leave(passenger)

    def pass_unseen(self, now: float) -> None:
        """Let first tokens that nobody tells come as forecast."""
        due = [one for one in self._ahead.values() if not one.first_token_seen and one.forecast_at <= now]
        for passenger in due:
            self.first_token(passenger.key, passenger.forecast_at)

    def check(self) -> list[str]:
        """Return the invariants that do not hold, as sentences."""
        wrong = self.hold.check((*self._ahead.values(), *self._decoding.values()))
        if any(one.key not in self._ahead for one in self._forming):
            wrong.append("a group forms of passengers that have their first token")
        return wrong

    def _batch(self, joining: Passenger | None = None) -> Batch:
        """Return what will decode when the forming group is computed: who does, and whose prompt is under way.

        With one who joins, also the forming group and that one. A true end counts as resident from the start.
        """
        coming = [one for one in self._ahead.values() if joining is not None or one not in self._forming]
        if joining is not None:
            coming.append(joining)
        return Batch(
            self._decoding_sequences + sum(one.sequences for one in coming),
            self._decoding_tokens + sum(one.true_tokens for one in coming),
        )

    def _work(self, passenger: Passenger) -> PromptWork:
        """Return what would be computed of its prompts, were they begun now."""
        prompts = ((tokens, self._model.cached_tokens(passenger.blocks, tokens)) for tokens in passenger.prompt_tokens)
        return sum((prompt_work(tokens, cached, passenger.copies) for tokens, cached in prompts), NO_WORK)

    def _room(self, batch: Batch) -> int:
        return self._facts.step_prefill_tokens - batch.sequences

    def _started(self) -> bool:
        """Say whether prompts before the forming group are being computed."""
        return len(self._ahead) > len(self._forming)

    def _boundary(self, now: float, batch: Batch) -> float:
        """Return when the next step may begin.

        A model that was not advanced to now tells the end of a decode step that has passed: the one in progress ends
        within another.
        """
        at = self._model.next_step_at
        if at is None:
            return now
        if at > now or self._model.batch_size == 0:
            return max(at, now)
        return now + self._facts.decode_seconds(batch)

    def _roll(self, boundary: float) -> None:
        """Let a group that formed for an earlier step have started."""
        if self._forming and boundary > self._forming_until:
            self._started_ends_at = self._group_ends_at
            self._forming = []
            self._group_stall_seconds = 0.0

    def _start(self, boundary: float, batch: Batch, *, prompts_run: bool) -> float:
        start = max(boundary, self._started_ends_at) if self._started() else boundary
        return start + self._pause(batch) if prompts_run else start

    def _pause(self, batch: Batch) -> float:
        """Return the time between the end of a prompt and the engine's next look at its queue."""
        return self._facts.decode_seconds(batch) if self._facts.decodes_between_looks else 0.0

    def _decodes_until(self, boundary: float, now: float, batch: Batch) -> int:
        """Return how many tokens each sequence may make until a boundary, beyond those that the model tells of."""
        at = self._model.next_step_at
        if at is None or at > now:
            return 1
        return 1 + ceil((boundary - at) / self._facts.decode_seconds(batch))

    def _back_in_queue(self) -> PromptWork:
        """Return the prompts to be computed anew of those who wait for it, or are at it."""
        return sum((repeat.work for ahead, repeat in self._repeats() if ahead == 0), NO_WORK)

    def _coming_back(self, tokens: int) -> PromptWork:
        """Return the prompts to be computed anew of those who will be back in the queue so many tokens from now.

        They come behind all that was sent by then, yet share the step with it.
        """
        return sum((repeat.work for ahead, repeat in self._repeats() if 0 < ahead <= tokens), NO_WORK)

    def _repeats(self) -> Iterator[tuple[int, Repeat]]:
        """Yield the prompts that will be computed anew, and how many tokens from now; 0 for one that is."""
        for one in self._repeating.values():
            produced = self._model.output_tokens(one.key)
            for repeat in one.repeats:
                if repeat.after_tokens >= produced:
                    yield repeat.after_tokens - produced, repeat

    def _stalls_to_come(self, batch: Batch) -> list[tuple[int, float]]:
        """Return how many tokens from now prompts will be computed anew, and how late that makes the others."""
        return [(ahead, self._facts.prefill(repeat.work, batch).stall_seconds) for ahead, repeat in self._repeats()]

    def _harms_group(self, first_token_at: float) -> bool:
        """Say whether one who forms the group and would be in time no longer would."""
        return any(self._group_ends_at <= one.deadline < first_token_at for one in self._forming)

    def _left_ahead(self, passenger: Passenger) -> None:
        if passenger in self._forming:
            self._forming.remove(passenger)
        if not self._ahead:
            self._started_ends_at = self._group_ends_at = -inf
            self._stall_seconds = self._group_stall_seconds = 0.0

    def _first_end(self, step_seconds: float, now: float) -> float:
        """Return when the first of those who decode ends at this pace, at least half a step from now."""
        left = min(one.output_tokens - self._model.output_tokens(one.key) for one in self._decoding.values())
        return now + max(left, 0.5) * step_seconds


def _sum_within(stalls: list[tuple[int, float]], tokens: int) -> float:
    """Return the sum of the stalls that come before so many tokens from now."""
    return sum(seconds for after_tokens, seconds in stalls if after_tokens < tokens)
