"""The running figures of a run: where each visit is counted, and that none is lost."""

from typing import Any

import pytest

from fakes.stages import EDGES, stage, traced
from llmshed.admission.request import Intent, PriorityClass
from llmshed.whatif.door import Door
from llmshed.whatif.measures import Tally
from llmshed.whatif.report import Starvation
from llmshed.whatif.visits import Try, Visit

DOOR = Door(stage(), EDGES)


def come(tally: Tally, at: float = 0.0, input_tokens: int = 10, **changed: Any) -> Try:
    """Let a visit arrive with its first try."""
    visit = DOOR.visit(traced(at, input_tokens, **changed), at)
    tally.arrive(visit)
    return again(tally, visit, at)


def again(tally: Tally, visit: Visit, now: float) -> Try:
    visit.tries += 1
    attempt = Try(visit.tries, visit, now, open_sequences={1: None})
    tally.begin_try(attempt, now)
    return attempt


def serve(tally: Tally, attempt: Try, first: float, end: float, output_tokens: int = 5) -> None:
    attempt.note_first_token(1, first)
    tally.first_token(attempt, first)
    tally.produce(attempt, output_tokens)
    attempt.note_end(1, output_tokens, end)
    tally.finish(attempt)


def test_a_visit_is_counted_in_its_cell_and_in_each_sum_over_it() -> None:
    tally = Tally(10)
    serve(tally, come(tally, input_tokens=10), 0.5, 0.6)
    serve(tally, come(tally, input_tokens=500, intent=Intent.BULK), 0.5, 0.6)
    serve(tally, come(tally, input_tokens=5000, priority_class=PriorityClass.LOW), 0.5, 0.6)
    figures = tally.figures(10.0, 1.0)
    places = [(cell.lane, cell.priority_class, cell.quartile) for cell in figures.cells]
    assert places == [("interactive", "normal", 1), ("bulk", "normal", 2), ("bulk", "low", 4)]
    assert {name: one.good for name, one in figures.lanes.items()} == {"interactive": 1, "bulk": 2}
    assert {name: one.good for name, one in figures.classes.items()} == {"normal": 2, "low": 1}
    assert [one.good for one in figures.quartiles] == [1, 1, 0, 1]
    assert (figures.total.arrived, figures.total.good) == (3, 3)


def test_a_refused_visit_that_comes_back_is_counted_once_and_its_user_waited_since_the_first_try() -> None:
    tally = Tally(10)
    first = come(tally, at=0.0)
    tally.refuse(first, "token_budget_exhausted", 0.0)
    second = again(tally, first.visit, 5.0)
    serve(tally, second, 5.5, 5.6)
    told = tally.figures(10.0, 6.0).total
    assert (told.arrived, told.retries, told.finished, told.good) == (1, 1, 1, 0)
    assert told.refusals == {"token_budget_exhausted": 1}
    assert told.ttft_seconds.p50 == pytest.approx(5.5)
    assert told.try_ttft_seconds.p50 == pytest.approx(0.5)
    assert told.starvation.longest_gap_seconds == pytest.approx(0.5), "a client that is away does not wait here"


def test_every_visit_has_one_ending() -> None:
    tally = Tally(10)
    serve(tally, come(tally), 0.5, 0.6)
    refused, failed, left, infeasible = (come(tally, input_tokens=n) for n in (10, 10, 10, 9000))
    tally.refuse(refused, "x", 1.0)
    tally.give_up(refused.visit, failed=False)
    tally.refuse(failed, "engine_overloaded", 1.0)
    tally.give_up(failed.visit, failed=True)
    assert tally.check(on_their_way=1) == ()
    tally.refuse(infeasible, "context_limit", 1.0)
    tally.give_up(infeasible.visit, failed=False)
    tally.leave_unfinished(left.visit, 9.0)
    assert tally.check(on_their_way=0) == ()
    told = tally.figures(10.0, 9.0).total
    ended = (told.finished, told.given_up, told.failed, told.unfinished, told.infeasible)
    assert (told.arrived, ended) == (5, (1, 1, 1, 1, 1))
    assert told.attainment == 0.25
    assert told.starvation.longest_wait_seconds == 9.0
    assert told.starvation.never_served_share == 0.75


def test_a_visit_that_was_lost_is_noticed() -> None:
    tally = Tally(10)
    come(tally)
    (sentence,) = tally.check(on_their_way=0)
    assert sentence == "1 requests arrived, 0 had their end and 0 are on their way"


def test_what_is_served_counts_within_the_window_and_what_was_good_by_its_arrival() -> None:
    tally = Tally(10)
    serve(tally, come(tally), 0.5, 0.6)
    late = come(tally, at=0.9)
    tally.close_window()
    serve(tally, late, 1.0, 1.1)
    told = tally.figures(1.0, 2.0).total
    assert told.throughput_requests_per_second == 1.0
    assert (told.throughput_input_tokens_per_second, told.throughput_output_tokens_per_second) == (10.0, 5.0)
    assert (told.goodput_requests_per_second, told.goodput_tokens_per_second) == (2.0, 30.0)


def test_an_infeasible_visit_counts_in_throughput_and_nowhere_else() -> None:
    tally = Tally(10)
    serve(tally, come(tally, input_tokens=9000), 0.5, 0.6)
    waits = come(tally, at=0.6, input_tokens=9000)
    told = tally.figures(1.0, 1.0).total
    assert tally.figures(1.0, 9.0).total.starvation == Starvation(None, 0.0, 0.0), "and its wait is nobody's"
    tally.refuse(waits, "context_limit", 9.0)
    tally.give_up(waits.visit, failed=False)
    assert tally.check(on_their_way=0) == ()
    assert (told.infeasible, told.finished, told.good, told.attainment) == (2, 0, 0, None)
    assert told.throughput_output_tokens_per_second == 5.0
    assert told.ttft_seconds.count == 0


def test_a_second_first_token_of_a_visit_is_no_second_service() -> None:
    tally = Tally(10)
    first = come(tally)
    first.note_first_token(1, 0.5)
    tally.first_token(first, 0.5)
    tally.refuse(first, "engine_failed", 0.6)
    second = again(tally, first.visit, 1.0)
    serve(tally, second, 3.0, 3.1)
    told = tally.figures(1.0, 4.0).total
    assert told.starvation.never_served_share == 0.0
    assert told.starvation.longest_wait_seconds == 0.5
    assert told.starvation.longest_gap_seconds == 2.0, "a request that is lost after its first token waited for none"
