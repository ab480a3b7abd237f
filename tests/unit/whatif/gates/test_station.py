"""The oracle's forecast of a first token, held against the engine: never late, and early by no more than a step."""

import random
from dataclasses import dataclass, replace

import pytest

from fakes.passengers import ids, passenger
from fakes.stages import GPU
from llmshed.simulation.building import Parameters, build_model
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.results import Ended, FirstToken
from llmshed.simulation.sequences import FinishReason, NaturalEnd, Sequence
from llmshed.simulation.vllm.parameters import VllmParameters
from llmshed.whatif.gates.engine_facts import EngineFacts, Repeat
from llmshed.whatif.gates.passenger import Passenger
from llmshed.whatif.gates.station import Station

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
    assert line.station.hold.kv_tokens == 6 * 7999 + 6000 + 2047, "TGI takes whole chunks of 1,024, less the last token"


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


def sessions(rng: random.Random, turns: list[int]) -> PromptBlocks:
    """Return the prompt of the next turn of some session, which begins with that of the turn before."""
    session = rng.randrange(len(turns))
    turns[session] = (turns[session] + 1) % 20
    return ids(*(1000 * session + turn for turn in range(2 * turns[session] + 1)))


@dataclass
class Load:
    """What was sent of a load, and by how much its first tokens came sooner than forecast."""

    sent: list[Passenger]
    lateness: list[float]


def under_load(parameters: Parameters, per_second: float, longest_output: int, seed: int, *, shared: bool) -> Load:
    facts, line, rng = EngineFacts(parameters), Line(parameters), random.Random(seed)  # noqa: S311 - one seed, one load
    turns = [0] * 12
    sent: list[Passenger] = []
    for key in range(1, 300):
        line.advance(line.now + rng.expovariate(per_second))
        blocks = sessions(rng, turns) if shared else None
        size = rng.randint(1, 2500) if blocks is None else len(blocks.ids) * 100 + rng.randint(0, 99)
        output = rng.randint(1, longest_output)
        repeats = facts.repeats_of(size, output, output, 1, blocks)
        one = passenger(key, size, output, blocks=blocks, repeats=repeats)
        if line.station.forecast(one, line.now).retry_at is None and line.has_room(one, 50_000):
            line.board(one)
            sent.append(one)
    line.advance(line.now + 1000)
    return Load(sent, sorted(one.forecast_at - line.first[one.key] for one in sent))


VLLM = VllmParameters(
    max_num_seqs=64,
    max_num_batched_tokens=4096,
    max_model_len=8192,
    kv_tokens=60_000,
    step_times=GPU.step_times,
)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(
    ("parameters", "shared"),
    [
        pytest.param(CACHING, True, id="TGI, cached prompts"),
        pytest.param(VLLM, False, id="vLLM"),
        pytest.param(VLLM, True, id="vLLM, cached prompts"),
    ],
)
def test_forecasts_are_near_whichever_engine_and_cache_there_is(
    parameters: Parameters, seed: int, *, shared: bool
) -> None:
    load = under_load(parameters, 9.0, 60, seed, shared=shared)
    assert len(load.sent) > 180
    if shared:
        assert sum(one.work.tokens for one in load.sent) < 0.5 * sum(one.input_tokens for one in load.sent)
    assert load.lateness[0] > -1e-9
    assert load.lateness[-1] < 0.25, "one who waits until its session's turn before has ended comes sooner"
    assert load.lateness[len(load.lateness) // 2] < 0.03


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("shared", [False, True])
def test_no_forecast_is_early_by_prompts_that_are_computed_again_at_each_chunk(seed: int, *, shared: bool) -> None:
    load = under_load(CACHING if shared else GPU, 3.0, 3000, seed, shared=shared)
    assert sum(bool(one.repeats) for one in load.sent) > 40
    assert load.lateness[0] > -1e-9
    assert load.lateness[len(load.lateness) // 2] < 0.03


def with_a_hurried_one(repeats: tuple[Repeat, ...]) -> Line:
    """Return a replica where one of 1,500 tokens is just in its pace beside one that has 2,000 to make."""
    line = Line()
    line.board(passenger(1, 4000, 2000, repeats=repeats))
    line.advance(0.5)
    line.board(passenger(2, 100, 1500, tpot_seconds=0.0108))
    line.advance(5.0)
    return line


def test_who_computes_a_prompt_anew_takes_the_time_to_spare_of_the_others() -> None:
    alone, long = with_a_hurried_one(()), passenger(3, 4000, 5)
    assert alone.station.spare_from(long, alone.station.forecast(long, 5.0), 5.0) is not None
    beside = with_a_hurried_one(EngineFacts(GPU).repeats_of(4000, 2000, 2000, 1, None))
    assert beside.station.spare_from(long, beside.station.forecast(long, 5.0), 5.0) is None, "it is late as it is"


def test_a_long_prompt_waits_for_one_whose_own_is_being_computed_and_that_has_no_time_to_spare() -> None:
    line = Line()
    line.board(passenger(1, 1000, 4, tpot_seconds=0.05))
    line.advance(0.05)
    long, short = passenger(2, 4000, 5), passenger(3, 100, 5)
    again = line.station.spare_from(long, line.station.forecast(long, 0.05), 0.05)
    assert again == pytest.approx(0.11, abs=1e-3), "when it has its first token"
    assert line.station.spare_from(short, line.station.forecast(short, 0.05), 0.05) is None


def test_the_limits_of_vllm_itself_bind() -> None:
    line = Line(replace(VLLM, max_num_queued_tokens=1000, max_num_queued_reqs=3))
    line.board(passenger(1, 999, 500))
    assert line.has_room(passenger(2, 999, 500), 50_000)
    line.board(passenger(2, 999, 500))
    assert not line.has_room(passenger(3, 1), 50_000), "1,000 prompt tokens have no answer yet"
    line.advance(1.0)
    assert line.has_room(passenger(3, 10, 500), 50_000)
    line.board(passenger(3, 10, 500))
    line.advance(1.5)
    assert not line.has_room(passenger(4, 1), 50_000), "three requests are all that it takes"


def test_a_prefix_that_several_refer_to_takes_room_once() -> None:
    line = Line(CACHING)
    line.board(passenger(1, 3000, 1, blocks=ids(*range(30))))
    line.advance(5.0)
    for key in range(2, 12):
        line.board(passenger(key, 3100, 100, blocks=ids(*range(30))))
    assert line.station.hold.true_tokens == 10 * 3200
    assert line.station.hold.held_tokens == 3000 + 10 * 200
    assert line.station.hold.kv_tokens == 3000 + 10 * 199
    assert line.has_room(passenger(12, 3100, 100, blocks=ids(*range(30))), 5200)
    assert not line.has_room(passenger(12, 3100, 100, blocks=ids(*range(30))), 5199)
    assert not line.has_room(passenger(12, 3100, 100), 5200)
    line.advance(20.0)
    assert (line.station.hold.held_tokens, line.station.hold.kv_tokens, line.station.hold.true_tokens) == (0, 0, 0)
