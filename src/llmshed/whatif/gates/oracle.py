"""The order-keeping oracle: what could be had by any gateway that serves in order of arrival.

It knows the true lengths, the step times and what prefix caches hold, and nothing of who will come. Work waits without
bound in order of arrival. The first in line goes to the replica where its first token comes soonest, once there are
fewer true tokens in flight than the level, the engine would take it into its next step, and nobody who decodes there
would miss its pace by it. It is refused when its first token could no longer be in time anywhere.

Under overload whoever is first in a line has waited until its last instant. Then only short prompts are still in time,
and nobody may join their step, so that steps are filled by one prompt each. So the oracle keeps a reserve: while others
wait behind it, the first is refused unless its prompt is begun with a share of its slack left. And those who may wait
for longest are the longest prompts, which bring the fewest tokens for the time that they take. So it may ask for worth:
while others wait, one that brings too few is refused. Level, reserve and worth are what it does not know by itself:
`best_oracle` tries several and keeps the best.
"""

from collections.abc import Iterable, Mapping, Sequence

from llmshed.admission.events import Cancelled, Event, Failed, Finished, FirstToken, NotSent
from llmshed.admission.reasons import Reason
from llmshed.admission.replica import Replica
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.whatif.gates.books import Books
from llmshed.whatif.gates.engine_facts import EngineFacts
from llmshed.whatif.gates.levels import OracleLevel
from llmshed.whatif.gates.objectives import TtftObjectives
from llmshed.whatif.gates.passenger import Passenger
from llmshed.whatif.gates.rule import Rule, TurnAway
from llmshed.whatif.gates.station import Forecast, Station
from llmshed.whatif.gates.work import Work
from llmshed.whatif.setting import Setting

LATE_EVERYWHERE = TurnAway(Reason.DEADLINE_INFEASIBLE, "its first token would come after its objective everywhere")
UNWORTHY = TurnAway(Reason.TOKEN_BUDGET_EXHAUSTED, "it has too few tokens for the time that it would take from others")


class Oracle(Rule):
    """The oracle at one level.

    Args:
        setting: the stage, whose models and trace it looks into.
        books: the replicas.
        level: what it keeps in flight, and in reserve.
    """

    most_waiting = 1_000_000_000

    def __init__(self, setting: Setting, books: Books, level: OracleLevel) -> None:
        """Start with all replicas empty."""
        facts = EngineFacts(setting.parameters)
        self._setting = setting
        self._books = books
        self._level = level
        self._facts = facts
        self._objectives = TtftObjectives(setting)
        self._stations: Mapping[str, Station] = {name: Station(facts, model) for name, model in setting.models.items()}
        self._where: dict[int, str] = {}
        self._passengers: dict[int, Passenger] = {}
        self._look_at: float | None = None

    def place(
        self, work: Work, candidates: Sequence[Replica], behind: Iterable[Work], now: float
    ) -> Replica | TurnAway | None:
        """Return where its first token comes soonest of those that can take it, or why it should go nowhere."""
        passenger = self._passenger(work, candidates[0])
        # Who gives way gives way to somebody: alone in its line everybody is served who can be.
        followed = any(other.key != work.key for other in behind)
        stations = {replica.spec.name: self._stations[replica.spec.name] for replica in candidates}
        forecasts = {name: station.forecast(passenger, now) for name, station in stations.items()}
        reserve = self._level.reserve_ratio if followed else 0.0
        in_time = [replica for replica in candidates if _is_in_time(passenger, forecasts[replica.spec.name], reserve)]
        if not in_time:
            return self._turned_away(work, LATE_EVERYWHERE)
        least = self._level.worth_ratio if followed else 0.0
        worthy = [
            replica
            for replica in in_time
            if stations[replica.spec.name].worth_ratio(passenger, forecasts[replica.spec.name]) >= least
        ]
        if not worthy:
            return self._turned_away(work, UNWORTHY)

        def sooner(replica: Replica) -> tuple[float, int, str]:
            name = replica.spec.name
            return forecasts[name].first_token_at, stations[name].hold.true_tokens, name

        for replica in sorted(worthy, key=sooner):
            if self._takes(stations[replica.spec.name], passenger, forecasts[replica.spec.name], now):
                return replica
        return None

    def waits_until(self, work: Work) -> float:
        """Return when even an idle replica would be too late for it, were all of its prompt cached that can be."""
        request, blocks = work.request, self._blocks(work)
        tokens = request.longest_prompt_tokens
        if blocks is not None:
            tokens = max(tokens - len(blocks.ids) * blocks.unit_tokens, 1)
        return self._deadline(work) - self._objectives.idle_seconds(tokens, request.sequences)

    def late(self, work: Work) -> TurnAway:
        """Return that even an idle replica would be too late now."""
        self._passengers.pop(work.key, None)
        return TurnAway(Reason.DEADLINE_INFEASIBLE, "its first token would come after its objective on an idle replica")

    def observe(self, event: Event, now: float) -> None:
        """Follow those on board; the first of each line is looked at after every event."""
        self._look_at = None
        for station in self._stations.values():
            station.pass_unseen(now)
        match event:
            case FirstToken(key):
                self._stations[self._where[key]].first_token(key, now)
            case Finished(key) | Failed(key) | Cancelled(key) | NotSent(key):
                self._passengers.pop(key, None)
                name = self._where.pop(key, None)
                if name is not None:
                    self._stations[name].leave(key)
            case _:
                pass

    def sent(self, work: Work, replica: Replica, now: float) -> None:
        """Let it board."""
        passenger = self._passenger(work, replica)
        station = self._stations[replica.spec.name]
        station.board(passenger, station.forecast(passenger, now), now)
        self._where[work.key] = replica.spec.name
        del self._passengers[work.key]

    def next_look(self, now: float, first: Iterable[Work]) -> float | None:
        """Return when the first in line may have become possible by time alone."""
        if self._look_at is None or self._look_at <= now or not any(True for _ in first):
            return None
        return self._look_at

    def check(self) -> list[str]:
        """Return the broken invariants of the stations, and of the level."""
        wrong = [f"{name}: {text}" for name, station in self._stations.items() for text in station.check()]
        wrong += [
            f"{name}: {station.hold.held_tokens} true tokens are in flight, the level is {self._level.tokens}"
            for name, station in self._stations.items()
            if len(station) > 1 and station.hold.held_tokens > max(self._level.tokens, station.largest_tokens)
        ]
        if set(self._where) != set(self._books.running):
            wrong.append("those on board are not those that run")
        return wrong

    def _turned_away(self, work: Work, why: TurnAway) -> TurnAway:
        del self._passengers[work.key]
        return why

    def _takes(self, station: Station, passenger: Passenger, forecast: Forecast, now: float) -> bool:
        """Say whether a replica takes it now; if time alone may change that, it is looked at again then."""
        if not station.has_room(passenger, forecast, self._level.tokens):
            return False
        again = forecast.retry_at
        if again is None:
            again = station.spare_from(passenger, forecast, now)
        if again is None:
            return True
        self._look_at = again if self._look_at is None else min(again, self._look_at)
        return False

    def _deadline(self, work: Work) -> float:
        """Return when its first token has to be there: its time counts from the first of its tries, as its client's."""
        return self._setting.truth(work.key).at_seconds + self._objectives.of_work(work)

    def _blocks(self, work: Work) -> PromptBlocks | None:
        """Return what the engine is told of the prompt's identity, where its cache is on; one for several is none."""
        cached = self._setting.parameters.prefix_caching and len(work.request.prompt_tokens) == 1
        return self._setting.truth(work.key).blocks if cached else None

    def _passenger(self, work: Work, replica: Replica) -> Passenger:
        known = self._passengers.get(work.key)
        if known is not None:
            return known
        request, ceiling = work.request, work.terms(replica).ceiling_tokens
        output = max(min(self._setting.truth(work.key).true_output_tokens, ceiling), 1)
        kv_tokens = sum(self._facts.kv_tokens_of(tokens, ceiling, output) for tokens in request.prompt_tokens)
        idle = self._objectives.idle_seconds(request.longest_prompt_tokens, request.sequences)
        passenger = self._passengers[work.key] = Passenger(
            key=work.key,
            sequences=request.sequences,
            input_tokens=max(request.input_tokens, request.sequences),
            output_tokens=output,
            # A prompt of no tokens still takes one position of a forward pass.
            prompt_tokens=tuple(max(tokens, 1) for tokens in request.prompt_tokens),
            copies=request.copies,
            blocks=self._blocks(work),
            kv_tokens=request.copies * kv_tokens,
            deadline=self._deadline(work),
            slack_seconds=self._objectives.of_work(work) - idle,
            tpot_seconds=self._setting.objectives.tpot_seconds[work.chosen.lane],
            first_token_seen=request.streamed,
            repeats=tuple(
                repeat
                for tokens in request.prompt_tokens
                for repeat in self._facts.repeats_of(tokens, ceiling, output, request.copies, self._blocks(work))
            ),
        )
        return passenger


def _is_in_time(passenger: Passenger, forecast: Forecast, reserve_ratio: float) -> bool:
    """Say whether the first token comes in time, and the prompt is begun with the reserve left."""
    latest_start = passenger.deadline - reserve_ratio * passenger.slack_seconds
    return forecast.first_token_at <= passenger.deadline and forecast.starts_at <= latest_start
