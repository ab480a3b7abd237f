"""The oracle's forecast of a first token, held against the engine: never late, and early by no more than a step."""

import random
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from fakes.stages import GPU
from llmshed.simulation.building import Parameters, build_model
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Ended, FirstToken
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence
from llmshed.whatif.gates.engine_facts import EngineFacts
from llmshed.whatif.gates.passenger import Passenger
from llmshed.whatif.gates.station import Station


def passenger(key: int, input_tokens: int = 500, output_tokens: int = 50, **changed: Any) -> Passenger:
    facts = EngineFacts(GPU)
    return Passenger(
        key=key,
        sequences=1,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        prompt_tokens=(input_tokens,),
        copies=1,
        blocks=changed.get("blocks"),
        kv_tokens=facts.kv_tokens_of(input_tokens, output_tokens, output_tokens),
        deadline=changed.get("deadline", inf),
        slack_seconds=1.0,
        tpot_seconds=changed.get("tpot_seconds", 0.1),
        first_token_seen=bool(changed.get("first_token_seen", True)),
    )


CACHING = replace(GPU, prefix_caching=True)


class Line:
    """A station and its engine, driven by hand."""

    def __init__(self, parameters: Parameters = GPU) -> None:
        self.model = build_model(parameters)
        self.station = Station(EngineFacts(parameters), self.model)
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

    def has_room(self, one: Passenger, level_tokens: int) -> bool:
        return self.station.has_room(one, self.station.forecast(one, self.now), level_tokens)

    def board(self, one: Passenger) -> float:
        forecast = self.station.forecast(one, self.now)
        self.station.board(one, forecast, self.now)
        assert self.model.take_permit(one.key)
        end = NaturalEnd(one.output_tokens, FinishReason.EOS)
        self.model.submit(
            Sequence(one.key, one.input_tokens, one.output_tokens, natural_end=end, blocks=one.blocks), self.now
        )
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
        if forecast.retry_at is None and line.has_room(one, 50_000):
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
    assert line.has_room(large, 10)
    line.board(large)
    assert line.has_room(passenger(2, 900, 100), 9000)
    assert not line.has_room(passenger(2, 900, 101), 9000)
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


def ids(*runs: int) -> PromptBlocks:
    """Return ids of a prompt of runs of 100 tokens, each run known by its number."""
    return PromptBlocks(runs, 100)


def test_of_a_cached_prompt_only_the_rest_is_forecast() -> None:
    line = Line(CACHING)
    line.board(passenger(1, 1000, 5, blocks=ids(*range(10))))
    line.advance(5.0)
    longer = passenger(2, 1250, blocks=ids(*range(12)))
    assert line.station.forecast(longer, line.now).work.tokens == 250
    told = line.board(longer)
    line.advance(10.0)
    assert told == pytest.approx(line.first[2], rel=1e-9)
    assert told == pytest.approx(5.0 + 0.01 + 250 / 10_000)


def test_a_prompt_that_gets_into_the_cache_while_the_next_one_waits_makes_the_forecast_no_later() -> None:
    line = Line(CACHING)
    line.board(passenger(1, 3000, 1, blocks=ids(*range(30))))
    line.advance(0.1)
    told = line.board(passenger(2, 3100, blocks=ids(*range(30))))
    line.advance(10.0)
    assert line.first[2] < 0.4, "the first ends with its only token, and leaves all of its prompt"
    assert told > 0.6


def test_forecasts_hold_where_sessions_come_back_to_what_is_cached() -> None:
    rng, line = random.Random(4), Line(CACHING)  # noqa: S311 - one seed, one load
    turns = [0] * 12
    lateness: dict[int, float] = {}
    sent: list[Passenger] = []
    for key in range(1, 400):
        line.advance(line.now + rng.expovariate(9))
        session = rng.randrange(12)
        turns[session] = (turns[session] + 1) % 20
        blocks = ids(*(1000 * session + turn for turn in range(2 * turns[session] + 1)))
        one = passenger(key, len(blocks.ids) * 100 + rng.randint(0, 99), rng.randint(1, 60), blocks=blocks)
        forecast = line.station.forecast(one, line.now)
        if forecast.retry_at is None and line.has_room(one, 50_000):
            line.board(one)
            sent.append(one)
    line.advance(line.now + 100)
    lateness = {one.key: one.forecast_at - line.first[one.key] for one in sent}
    assert len(sent) > 250
    assert sum(one.work.tokens for one in sent) < 0.5 * sum(one.input_tokens for one in sent), "most was cached"
    assert min(lateness.values()) > -1e-9
    assert sorted(lateness.values())[len(sent) // 2] < 0.03


def test_a_prefix_that_several_refer_to_takes_room_once() -> None:
    line = Line(CACHING)
    line.board(passenger(1, 3000, 1, blocks=ids(*range(30))))
    line.advance(5.0)
    for key in range(2, 12):
        line.board(passenger(key, 3100, 100, blocks=ids(*range(30))))
    assert line.station.true_tokens == 10 * 3200
    assert line.station.held_tokens == 3000 + 10 * 200
    assert line.station.kv_tokens == 3000 + 10 * 199
    assert line.has_room(passenger(12, 3100, 100, blocks=ids(*range(30))), 5200)
    assert not line.has_room(passenger(12, 3100, 100, blocks=ids(*range(30))), 5199)
    assert not line.has_room(passenger(12, 3100, 100), 5200)
    line.advance(20.0)
    assert (line.station.held_tokens, line.station.kv_tokens, line.station.true_tokens) == (0, 0, 0)
