"""A recorded model does what the model does, and tells it in order."""

from dataclasses import replace
from math import inf

from llmshed.simulation.limits import OutputPlan
from llmshed.simulation.model import ReplicaModel
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.simulation.recording import RecordedModel
from llmshed.simulation.results import Dropped, Ended, Failed, FirstToken, Result, StepsEnded
from llmshed.simulation.schedule import (
    Called,
    Close,
    FailStep,
    Leave,
    Resume,
    Stall,
    Submit,
    TakePermit,
)
from llmshed.simulation.scheduler import Scheduler
from llmshed.simulation.sequences import Sequence

PARAMETERS = ReplicaParameters(max_concurrent_requests=2)


def run(model: ReplicaModel) -> list[Result]:
    """Serve one, lose one with its batch, abandon one, refuse one and hold the engine for a while."""
    results: list[Result] = []
    for key, now in ((1, 0.0), (2, 1.0)):
        results += model.advance(now)
        assert model.take_permit(key)
        assert isinstance(model.submit(Sequence(key, 10, 3), now), OutputPlan)
    results += model.advance(1.01)
    model.fail_step("out of memory")
    results += model.advance(2.0)
    assert [model.take_permit(key) for key in (3, 4, 5)] == [True, True, False]
    assert isinstance(model.submit(Sequence(3, 10, 3), 2.0), OutputPlan)
    assert not isinstance(model.submit(Sequence(4, 10_000, 3), 2.0), OutputPlan)
    model.leave(3)
    model.stall(2.0, inf)
    results += model.advance(9.0)
    model.resume(9.0)
    results += model.advance(10.0)
    return results


def test_what_it_says_is_cached_is_what_the_model_says() -> None:
    model = Scheduler(replace(PARAMETERS, prefix_caching=True))
    recorded, prompt = RecordedModel(model, lambda _: None), PromptBlocks(tuple(range(10)), 1)
    assert recorded.take_permit(1)
    recorded.submit(Sequence(1, 10, 3, blocks=prompt), 0.0)
    recorded.advance(10.0)
    assert recorded.cached_tokens(prompt, 11) == model.cached_tokens(prompt, 11) == 10


def test_it_changes_nothing() -> None:
    assert run(RecordedModel(Scheduler(PARAMETERS), lambda _: None)) == run(Scheduler(PARAMETERS))


def test_calls_and_results_are_told_in_the_order_in_which_they_happen() -> None:
    told: list[Called | Result] = []
    model = RecordedModel(Scheduler(PARAMETERS), told.append)
    results = run(model)
    model.close()
    assert [entry for entry in told if not isinstance(entry, Called)] == results
    calls = [(entry.at, entry.call) for entry in told if isinstance(entry, Called)]
    assert calls == [
        (0.0, TakePermit(1, granted=True)),
        (0.0, Submit(Sequence(1, 10, 3), accepted=True)),
        (1.0, TakePermit(2, granted=True)),
        (1.0, Submit(Sequence(2, 10, 3), accepted=True)),
        (1.01, FailStep("out of memory")),
        (2.0, TakePermit(3, granted=True)),
        (2.0, TakePermit(4, granted=True)),
        (2.0, TakePermit(5, granted=False)),
        (2.0, Submit(Sequence(3, 10, 3), accepted=True)),
        (2.0, Submit(Sequence(4, 10_000, 3), accepted=False)),
        (2.0, Leave(3)),
        (2.0, Stall(None)),
        (9.0, Resume()),
        (10.0, Close()),
    ]
    kinds = [type(result) for result in results if not isinstance(result, StepsEnded)]
    assert kinds == [FirstToken, Ended, Failed, Dropped]


def test_what_it_shows_is_the_models() -> None:
    model = RecordedModel(Scheduler(PARAMETERS), lambda _: None)
    model.take_permit(1)
    model.submit(Sequence(1, 10, 3), 0.0)
    assert (model.queue_size, model.batch_size, model.permits_in_use, model.held_kv_tokens) == (1, 0, 1, 0)
    model.advance(0.0)
    plain = Scheduler(PARAMETERS)
    plain.take_permit(1)
    plain.submit(Sequence(1, 10, 3), 0.0)
    plain.advance(0.0)
    assert (model.next_step_at, model.next_change_at) == (plain.next_step_at, plain.next_change_at)
    assert (model.sequences(), model.output_tokens(1), model.check()) == (plain.sequences(), 0, ())
