"""TGI's scheduling rules as its clients feel them, each against the published rule it follows from."""

from collections.abc import Sequence as Row
from itertools import pairwise
from math import ceil

import pytest

from llmshed.simulation.cost import StepTimes, StepWork
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.results import ChunkQueued, Ended, FirstToken
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import FinishReason, Sequence

# A large GPU with an 8B model: the linear layers 0.025 ms a prompt token, attention on top.
TIMES = StepTimes(
    step_seconds=0.006,
    seconds_per_prefill_token=25e-6,
    seconds_per_decoding_sequence=25e-6,
    weights_seconds=0.006,
    seconds_per_attention_pair=5e-10,
    seconds_per_resident_token=5e-8,
)


def large(**changes: object) -> ReplicaParameters:
    values: dict[str, object] = {
        "max_input_tokens": 16_000,
        "max_total_tokens": 18_000,
        "kv_tokens": 400_000,
        "step_times": TIMES,
        **changes,
    }
    return ReplicaParameters(**values)  # type: ignore[arg-type]  # values are told by name


class Clients:
    """Streams of which each token's instant is seen."""

    def __init__(self, parameters: ReplicaParameters) -> None:
        self.replica = Scheduler(parameters)
        self.sent: dict[int, float] = {}
        self.first: dict[int, float] = {}
        self.ended: dict[int, Ended] = {}
        self.chunks = 0
        self.tokens: dict[int, list[float]] = {}

    def send(self, key: int, at: float, input_tokens: int, output: int) -> None:
        self.run(at)
        assert self.replica.take_permit(key)
        self.sent[key] = at
        self.replica.submit(Sequence(key, input_tokens, output), at)

    def run(self, until: float = 3600) -> None:
        while (at := self.replica.next_step_at) is not None and at <= until:
            for result in self.replica.advance(at):
                match result:
                    case FirstToken(key, when):
                        self.first[key] = when
                    case Ended():
                        self.ended[result.key] = result
                        self._see(result.key, result.output_tokens, at)
                    case ChunkQueued():
                        self.chunks += 1
                    case _:
                        pass
            for key in self.sent:
                self._see(key, self.replica.output_tokens(key), at)

    def ttft(self, key: int) -> float:
        return self.first[key] - self.sent[key]

    def gaps(self, key: int) -> Row[float]:
        return [after - before for before, after in pairwise(self.tokens[key])]

    def _see(self, key: int, count: int, at: float) -> None:
        seen = self.tokens.setdefault(key, [])
        seen += [at] * (count - len(seen))


def full_step_seconds(prefill_tokens: int, context_tokens: int = 0) -> float:
    pairs = prefill_tokens * context_tokens + prefill_tokens * (prefill_tokens + 1) // 2
    return TIMES.seconds(StepWork(prefill_tokens, pairs))


def extra_ttft(parameters: ReplicaParameters, running: int) -> float:
    """How much longer a request of 10 tokens waits when one of 15,000 came just before it."""
    alone, behind = Clients(parameters), Clients(parameters)
    for clients in (alone, behind):
        for key in range(100, 100 + running):
            clients.send(key, 0.0, 50, 1000)
    behind.send(1, 1.0, 15_000, 10)
    for clients in (alone, behind):
        clients.send(2, 1.0001, 10, 10)
        clients.run(60)
    return behind.ttft(2) - alone.ttft(2)


@pytest.mark.parametrize("budget", [1024, 2048, 4096, 5000, 8192])
@pytest.mark.parametrize("running", [0, 20])
def test_a_tiny_request_behind_a_long_prompt_waits_for_all_of_its_steps(budget: int, running: int) -> None:
    times = StepTimes(0.025, 1 / 8000, 0.0001)
    step = times.seconds(StepWork(prefill_tokens=budget))
    extra = extra_ttft(large(max_batch_prefill_tokens=budget, step_times=times), running)
    assert extra == pytest.approx(ceil(15_000 / budget) * step, rel=0.10)


def test_with_attention_later_pieces_of_the_prompt_take_longer() -> None:
    # Three pieces of 5,000, whose attention reaches over what is before them; then a step of its own, as when alone.
    pieces = [full_step_seconds(5000, before) for before in (0, 5000, 10_000)]
    assert pieces[2] > 1.15 * pieces[0]
    assert extra_ttft(large(max_batch_prefill_tokens=5000), 0) == pytest.approx(sum(pieces), rel=0.02)


def test_streams_slow_down_beside_a_long_prompt_to_the_length_of_a_mixed_step() -> None:
    clients = Clients(large(max_batch_prefill_tokens=2048))
    for key in range(4):
        clients.send(key, 0.0, 50, 400)
    clients.send(9, 1.0, 15_000, 10)
    clients.run()
    # A piece takes the budget less a token for each of the four streams; the heaviest is the last full one.
    work = StepWork(2044, 2044 * 6 * 2044 + 2044 * 2045 // 2, 4, 4 * 150)
    assert max(clients.gaps(0)) == pytest.approx(TIMES.seconds(work), rel=0.05)
    assert min(clients.gaps(0)) == pytest.approx(TIMES.seconds(StepWork(0, 0, 4, 4 * 60)), rel=0.01)


@pytest.mark.parametrize("changes", [{"version": "2.4.0"}, {"chunked_prefill": False}])
def test_without_chunked_prefill_streams_stand_still_for_the_whole_prompt(changes: dict[str, object]) -> None:
    clients = Clients(large(max_batch_prefill_tokens=16_000, **changes))
    for key in range(4):
        clients.send(key, 0.0, 50, 400)
    clients.send(9, 1.0, 15_000, 10)
    clients.run()
    decode = TIMES.seconds(StepWork(0, 0, 5, 15_000))
    assert max(clients.gaps(0)) == pytest.approx(full_step_seconds(15_000) + decode, rel=0.01)


def test_a_head_without_kv_holds_up_requests_that_would_fit() -> None:
    clients = Clients(large(kv_tokens=20_000, max_batch_prefill_tokens=4096))
    clients.send(1, 0.0, 10_000, 1000)
    clients.send(2, 0.5, 15_000, 10)
    for key in range(3, 13):
        clients.send(key, 0.6, 100, 10)
    clients.run()
    # Ten requests of 109 tokens had 8,000 free tokens before them, and started after the first one ended.
    assert all(clients.ended[key].started_at >= clients.ended[1].at for key in range(2, 13))
    assert clients.ttft(3) > 0.9 * (clients.ended[1].at - 0.6)


def test_a_ceiling_above_a_chunk_runs_over_it_and_waits_in_line_between() -> None:
    clients = Clients(large())
    clients.send(1, 0.0, 100, 1500)
    clients.run()
    assert (clients.ended[1].output_tokens, clients.chunks) == (2048, 1)
    # Between the chunks the prompt with all its output is worked through again.
    assert clients.gaps(1)[1023] == pytest.approx(full_step_seconds(1124), rel=0.05)


def test_an_answer_whose_next_chunk_would_not_be_valid_just_ends() -> None:
    clients = Clients(large(max_total_tokens=3000, max_input_tokens=2000))
    clients.send(1, 0.0, 1000, 4000)
    clients.send(2, 0.0, 900, 4000)
    clients.run()
    # 1,000 + 1,024 exceeds the input limit; 900 + 1,024 does not, and 1,924 + 1,024 fits the total. Then that ends too.
    assert [clients.ended[key].output_tokens for key in (1, 2)] == [1024, 2048]
    assert {clients.ended[key].reason for key in (1, 2)} == {FinishReason.LENGTH}
