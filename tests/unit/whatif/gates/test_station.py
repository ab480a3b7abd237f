"""The oracle's forecast of a first token, held against the engine: never late, and early by no more than a step."""

import random
from math import inf

import pytest

from fakes.stages import GPU
from llmshed.simulation.results import Ended, FirstToken
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence
from llmshed.whatif.gates.engine_facts import EngineFacts, attention_pairs
from llmshed.whatif.gates.passenger import Passenger
from llmshed.whatif.gates.station import Station


def passenger(key: int, input_tokens: int = 500, output_tokens: int = 50, **changed: float) -> Passenger:
    facts = EngineFacts(GPU)
    return Passenger(
        key=key,
        sequences=1,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        attention_pairs=attention_pairs(input_tokens),
        kv_tokens=facts.kv_tokens_of(input_tokens, output_tokens, output_tokens),
        deadline=changed.get("deadline", inf),
        slack_seconds=1.0,
        tpot_seconds=changed.get("tpot_seconds", 0.1),
        first_token_seen=bool(changed.get("first_token_seen", True)),
    )


class Line:
    """A station and its engine, driven by hand."""

    def __init__(self) -> None:
        self.model = Scheduler(GPU)
        self.station = Station(EngineFacts(GPU), self.model)
        self.first: dict[int, float] = {}
        self.now = 0.0

    def advance(self, now: float) -> None:
        while (at := self.model.next_change_at) is not None and at <= now:
            for told in self.model.advance(at):
                match told:
                    case FirstToken(key, when):
                        self.first[key] = when
                        self.station.first_token(key, when)
                    case Ended(key):
                        self.station.leave(key)
                    case _:
                        pass
        self.model.advance(now)
        self.now = now

    def board(self, one: Passenger) -> float:
        forecast = self.station.forecast(one, self.now)
        self.station.board(one, forecast, self.now)
        assert self.model.take_permit(one.key)
        end = NaturalEnd(one.output_tokens, FinishReason.EOS)
        self.model.submit(Sequence(one.key, one.input_tokens, one.output_tokens, natural_end=end), self.now)
        assert self.station.check() == []
        return forecast.first_token_at


def test_alone_on_a_replica_the_forecast_is_exact() -> None:
    line = Line()
    told = line.board(passenger(1, 6000))
    line.advance(10.0)
    assert told == pytest.approx(line.first[1], rel=1e-9)


def test_two_who_share_a_step_have_their_first_tokens_together() -> None:
    line = Line()
    line.board(passenger(1, 500))
    told = line.board(passenger(2, 700))
    line.advance(10.0)
    assert line.first[1] == line.first[2] == pytest.approx(told, rel=1e-9)
    assert told == pytest.approx(0.01 + 1200 / 10_000, rel=0.01)


def test_a_forecast_is_never_early_and_late_by_two_decode_steps_at_most() -> None:
    rng, line = random.Random(8), Line()  # noqa: S311 - one seed, one load
    forecasts: dict[int, float] = {}
    for key in range(1, 400):
        line.advance(line.now + rng.expovariate(8))
        one = passenger(key, rng.randint(1, 2500), rng.randint(1, 120))
        forecast = line.station.forecast(one, line.now)
        if forecast.retry_at is None and line.station.has_room(one, 50_000):
            forecasts[key] = line.board(one)
            for other in line.station._forming:
                forecasts[other.key] = other.forecast_at
    line.advance(line.now + 100)
    assert len(forecasts) > 250
    lateness = [forecasts[key] - line.first[key] for key in forecasts]
    assert min(lateness) > -1e-9
    assert max(lateness) < 0.1
    assert sorted(lateness)[len(lateness) // 2] < 0.03, "one decode step beside some tens of sequences"


def test_who_would_make_the_group_late_waits_for_its_step() -> None:
    line = Line()
    line.board(passenger(1, 1000, deadline=0.12))
    forecast = line.station.forecast(passenger(2, 1000), 0.0)
    assert forecast.retry_at == 0.0
    assert line.station.forecast(passenger(3, 50), 0.0).retry_at is None


def test_room_is_bound_by_level_and_kv_but_an_empty_replica_takes_anything() -> None:
    line = Line()
    large = passenger(1, 6000, 2000)
    assert line.station.has_room(large, 10)
    line.board(large)
    assert line.station.has_room(passenger(2, 900, 100), 9000)
    assert not line.station.has_room(passenger(2, 900, 101), 9000)
    for key in range(3, 9):
        line.board(passenger(key, 7000, 1000))
    assert line.station.kv_tokens == 6 * 7999 + 6000 + 2047, "TGI takes whole chunks of 1,024, less the last token"


def test_a_prompt_waits_until_nobody_misses_its_pace_by_it() -> None:
    line = Line()
    line.board(passenger(1, 100, 11))
    line.advance(0.025)
    assert 1 in line.first
    long = passenger(2, 4000)
    forecast = line.station.forecast(long, line.now)
    assert (
        line.station.spare_from(passenger(2, 100), line.station.forecast(passenger(2, 100), line.now), line.now) is None
    )
    assert line.station.spare_from(long, forecast, line.now) is None, "ten tokens at 0.1 s leave 0.9 s to spare"
    hurried = Line()
    hurried.board(passenger(1, 100, 11, tpot_seconds=0.03))
    hurried.advance(0.025)
    again = hurried.station.spare_from(long, hurried.station.forecast(long, hurried.now), hurried.now)
    assert again is not None
    assert again > hurried.now
    hurried.advance(1.0)
    assert hurried.station.spare_from(long, hurried.station.forecast(long, 1.0), 1.0) is None, "it has ended"


def test_a_first_token_that_nobody_tells_comes_as_forecast() -> None:
    line = Line()
    told = line.board(passenger(1, 500, 50, first_token_seen=False))
    line.station.pass_unseen(told - 0.001)
    assert list(line.station._ahead) == [1]
    line.station.pass_unseen(told)
    assert (list(line.station._ahead), list(line.station._decoding)) == ([], [1])
