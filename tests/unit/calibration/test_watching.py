from llmshed.calibration.events import StopReason
from llmshed.calibration.watching import FAILED_IN_A_ROW, MOST_SILENT_SECONDS, REFUSED_FROM_THE_START, Watch
from llmshed.workload.asks import Ask, Outcome, Sample


def ended(outcome: Outcome) -> Sample:
    ask = Ask("a", 10, 10, runs_to_ceiling=True, lane="interactive")
    return Sample(ask, 0.0, 0.0, (), 1.0, outcome, None, 0, "connection refused")


def test_an_engine_that_refuses_from_the_start_is_told() -> None:
    watch = Watch()
    for _ in range(REFUSED_FROM_THE_START - 1):
        watch.ended(ended(Outcome.REFUSED))
    assert watch.wrong(0.0, 0) is None
    watch.ended(ended(Outcome.REFUSED))
    reason, detail = watch.wrong(0.0, 0) or (None, "")
    assert reason is StopReason.REFUSES
    assert "connection refused" in detail


def test_refusals_after_an_answer_are_a_knee_and_no_fault() -> None:
    watch = Watch()
    watch.ended(ended(Outcome.FINISHED))
    for _ in range(10 * REFUSED_FROM_THE_START):
        watch.ended(ended(Outcome.REFUSED))
    assert watch.wrong(0.0, 0) is None


def test_failures_in_a_row_are_a_replica_that_is_gone() -> None:
    watch = Watch()
    for _ in range(FAILED_IN_A_ROW - 1):
        watch.ended(ended(Outcome.FAILED))
    watch.ended(ended(Outcome.FINISHED))
    for _ in range(FAILED_IN_A_ROW):
        assert watch.wrong(0.0, 0) is None
        watch.ended(ended(Outcome.FAILED))
    assert (watch.wrong(0.0, 0) or (None,))[0] is StopReason.FAILS


def test_silence_counts_only_while_something_runs() -> None:
    watch = Watch()
    watch.heard(0.0)
    assert watch.wrong(MOST_SILENT_SECONDS, 0) is None
    assert watch.wrong(MOST_SILENT_SECONDS - 1, 1) is None
    assert (watch.wrong(MOST_SILENT_SECONDS, 1) or (None,))[0] is StopReason.SILENT


def test_what_we_cancelled_ourselves_is_no_sample() -> None:
    watch = Watch()
    watch.ended(ended(Outcome.CANCELLED))
    assert watch.samples == 0
