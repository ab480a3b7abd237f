"""The source text's worked example, as events in and actions out."""

from fakes.door import arrive, door, request, spec
from llmshed.admission.actions import Dispatch, Refuse
from llmshed.admission.budget import Equation, Reservation
from llmshed.admission.reasons import Reason


def test_the_equation_of_the_source_text() -> None:
    equation = Equation(96_000, 9_600, 58_000, 8_000, 0, 64)
    assert equation.headroom_tokens == 20_400
    assert equation.fits(Reservation(14_000, 4_000, 0, 1))
    assert not equation.fits(Reservation(19_000, 4_000, 0, 1))


def test_with_66_000_running_18_000_is_sent_and_23_000_is_refused() -> None:
    controller = door(spec())
    for key, (input_tokens, output) in enumerate([(30_000, 10_000), (20_000, 6_000)]):
        assert isinstance(arrive(controller, key, input_tokens, output), Dispatch)
    (state,) = controller.state(0.0).replicas
    assert state.equation.active_tokens == 66_000
    assert state.equation.headroom_tokens == 20_400

    refused = arrive(controller, 2, 19_000, 4_000)
    assert isinstance(refused, Refuse)
    assert refused.verdict.reason is Reason.TOKEN_BUDGET_EXHAUSTED
    assert refused.verdict.status == 429
    assert refused.verdict.reservation is not None
    assert refused.verdict.reservation.total_tokens == 23_000
    assert "96,000 gross - 9,600 guard - 66,000 active - 0 queued = 20,400 free" in refused.verdict.detail

    assert isinstance(arrive(controller, 3, 14_000, 4_000), Dispatch)
    assert controller.state(0.0).replicas[0].equation.active_tokens == 84_000


def test_200_000_tokens_are_refused_for_good() -> None:
    verdict = door(spec()).assess(request(1, 200_000, 4_000), 0.0)
    assert (verdict.status, verdict.reason) == (413, Reason.CONTEXT_LIMIT)
    assert verdict.retry_after_seconds is None
