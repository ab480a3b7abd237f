"""A machine whose run is interrupted goes on where its phase began, and one that is disturbed ends."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from llmshed.admission.signals.readings import ReplicaReading
from llmshed.calibration.events import Action, Answered, Begun, Event, Read, ReadMetrics, Send, Woken
from llmshed.clock import SystemClock
from llmshed.loadtest.journal import Journal, read_journal
from llmshed.loadtest.kept import KeptMachine
from llmshed.loadtest.resuming import ShiftedClock, Standing, brought_back
from llmshed.loadtest.watchful import DisturbedError, WatchfulSender
from llmshed.workload.asks import Ask, Outcome, Sample

FIRST, SECOND = "first", "second"


@dataclass(frozen=True)
class At:
    phase: str
    level: float


@dataclass
class TwoPhases:
    """Keeps two asks in flight; its second phase begins with the third answer that is no cancellation."""

    seen: list[tuple[Event, float]] = field(default_factory=list)
    sent: int = 0
    answers: int = 0

    def handle(self, event: Event, now: float) -> list[Action]:
        self.seen.append((event, now))
        if isinstance(event, Begun):
            return [self._send(), self._send()]
        if isinstance(event, Answered):
            self.answers += event.sample.outcome is not Outcome.CANCELLED
            return [self._send()]
        return [ReadMetrics()]

    def next_wakeup(self) -> float | None:
        return 100.0 if self.answers < 5 else None

    def progress(self) -> At:
        phase = FIRST if self.answers < 3 else SECOND if self.answers < 5 else "over"
        return At(phase, 10.0 * self.sent)

    def _send(self) -> Send:
        self.sent += 1
        return Send(Ask(str(self.sent), 10, 5, runs_to_ceiling=False, lane=None))


def never(_: TwoPhases) -> bool:
    return False


def answer(number: int, now: float) -> Answered:
    ask = Ask(str(number), 10, 5, runs_to_ceiling=False, lane=None)
    return Answered(Sample(ask, now - 1, now - 1, (now - 0.5, now), now, Outcome.FINISHED, 200, 5))


Row = tuple[str, str, float, float]


class Rows:
    def __init__(self) -> None:
        self.told: list[Row] = []

    def __call__(self, sample: Sample, phase: str, level: float, began_at: float) -> None:
        self.told.append((sample.ask.id, phase, level, began_at))


def kept(path: Path, standing: Standing[TwoPhases], rows: Rows, foreign: float = 0.0) -> tuple[KeptMachine, Journal]:
    sender = WatchfulSender.__new__(WatchfulSender)
    sender.foreign_tokens = foreign
    journal = Journal(path, {} if standing.began_at is None else None, standing.keep_bytes)
    return KeptMachine(standing, sender, journal, rows), journal


def interrupted(path: Path, answers: int) -> Rows:
    rows = Rows()
    machine, journal = kept(path, Standing(TwoPhases()), rows)
    with journal:
        machine.handle(Begun(None), 50.0)
        for number in range(1, answers + 1):
            machine.handle(answer(number, 50.0 + number), 50.0 + number)
    return rows


def test_what_is_told_goes_to_the_machine_the_journal_and_the_rows(tmp_path: Path) -> None:
    rows = interrupted(tmp_path / "run.jsonl", 2)
    assert rows.told == [("1", FIRST, 30.0, 50.0), ("2", FIRST, 40.0, 50.0)]
    _, entries = read_journal((tmp_path / "run.jsonl").read_bytes())
    assert [entry.event for entry in entries] == [Begun(None), answer(1, 51.0), answer(2, 52.0)]


def test_a_run_goes_on_from_the_beginning_of_its_phase(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    interrupted(path, 4)
    standing = brought_back(TwoPhases, read_journal(path.read_bytes())[1], never)
    assert standing.machine.progress().phase == SECOND
    assert (standing.began_at, standing.ended_at) == (50.0, 53.0)
    assert [ask.id for ask in standing.open_asks] == ["4", "5"]
    rows = Rows()
    machine, journal = kept(path, standing, rows)
    with journal:
        actions = machine.handle(Begun(None), 60.0)
    assert [action.ask.id for action in actions if isinstance(action, Send)] == ["6", "7"]
    ends = [event.sample for event, _ in standing.machine.seen[-2:] if isinstance(event, Answered)]
    assert [(end.ask.id, end.outcome) for end in ends] == [("4", Outcome.CANCELLED), ("5", Outcome.CANCELLED)]
    assert [row[0] for row in rows.told] == ["1", "2", "3", "4", "5"]
    assert all(row[3] == 50.0 for row in rows.told)
    again = brought_back(TwoPhases, read_journal(path.read_bytes())[1], never)
    assert again.machine.progress().phase == SECOND


def test_a_first_phase_that_was_not_ended_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    interrupted(path, 2)
    standing = brought_back(TwoPhases, read_journal(path.read_bytes())[1], never)
    assert [ask.id for ask in standing.open_asks] == ["1", "2"]
    assert not standing.rows


def test_a_journal_without_events_is_a_run_that_has_not_begun() -> None:
    assert brought_back(TwoPhases, [], never).began_at is None


@pytest.mark.parametrize(("well", "phase"), [(True, "over"), (False, SECOND)])
def test_a_run_that_ended_stays_so_only_if_it_ended_well(tmp_path: Path, *, well: bool, phase: str) -> None:
    path = tmp_path / "run.jsonl"
    interrupted(path, 5)
    standing = brought_back(TwoPhases, read_journal(path.read_bytes())[1], lambda _: well)
    assert standing.machine.progress().phase == phase


def test_prompts_of_others_end_the_run_once(tmp_path: Path) -> None:
    machine, journal = kept(tmp_path / "run.jsonl", Standing(TwoPhases()), Rows(), foreign=900.0)
    reading = Read(ReplicaReading(1.0, 0.0))
    with journal:
        machine.handle(Begun(None), 1.0)
        with pytest.raises(DisturbedError, match="about 900 prompt tokens that were not sent from here"):
            machine.handle(reading, 2.0)
        machine.handle(reading, 2.1)
        machine.handle(replace(answer(1, 2.2)), 2.2)


def test_nothing_in_flight_wakes_the_machine(tmp_path: Path) -> None:
    standing = Standing(TwoPhases(), 50.0, 53.0)
    (tmp_path / "run.jsonl").write_bytes(b"")
    machine, journal = kept(tmp_path / "run.jsonl", standing, Rows())
    with journal:
        assert machine.handle(Begun(None), 60.0) == [ReadMetrics()]
    assert standing.machine.seen == [(Woken(), 60.0)]
    assert machine.next_wakeup() == 100.0


def test_a_shifted_clock_goes_on_where_the_other_ended() -> None:
    system = SystemClock()
    begun = system.now()
    clock = ShiftedClock(53.0)
    made = system.now()
    before, told, after = system.now(), clock.now(), system.now()
    assert 53.0 + before - made <= told <= 53.0 + after - begun
