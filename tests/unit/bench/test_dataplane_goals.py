"""What the data plane may cost, from made-up figures; every bound is worked out by hand."""

import pytest
from dataplane.figures import Figures
from dataplane.goals import Goal, goals
from dataplane.tables import BEGIN, END, put_into, section


def good() -> Figures:
    """Return figures with which every goal is just met."""
    figures = Figures()
    figures.note("stream", "nginx", 1, cpu_us_per_event=18.0)
    figures.note("stream", "llmshed", 1, cpu_us_per_event=36.0)
    for name, cost in {"nginx": 20.0, "llmshed": 180.0, "smg": 180.0, "litellm": 9000.0}.items():
        figures.note("request", name, 1, cpu_us_per_request=cost)
    figures.note("cold", "llmshed", 1, cpu_us_per_request=720.0)  # 1.3 x 400 + 200
    figures.note("cold", "encode_batch_fast", 1, cpu_us_per_request=400.0)
    figures.note("turns", "llmshed", 1, cpu_us=600.0)
    figures.note("turns", "encode_batch_fast", 1, cpu_us=12_000.0)
    figures.note("isolation", "llmshed", 1, alone_p99_us=700.0, beside_p99_us=3000.0)  # 4 x 0.7 is less than 3 ms
    figures.note("refused_unread", "llmshed", 1, cpu_us_per_request=60.0)
    figures.note("refused_counted", "llmshed", 1, cpu_us_per_request=120.0)
    figures.note("storm", "llmshed", 1, calm_p50_us=100.0, twice_p50_us=150.0)
    figures.note("memory", "nginx", 1, bytes_per_stream=17_000.0)
    figures.note("memory", "llmshed", 1, bytes_per_stream=17_000.0)
    figures.note("scrape", "llmshed", 1, stall_ms=5.0)
    figures.note("start", "python", 1, wall_ms=20.0)
    figures.note("start", "llmshed", 1, wall_ms=160.0)
    return figures


def not_met(figures: Figures) -> list[Goal]:
    return [goal for goal in goals(figures) if not goal.met]


def test_what_is_just_at_its_bound_is_met() -> None:
    assert not_met(good()) == []
    assert len(list(goals(good()))) == 12


@pytest.mark.parametrize(
    ("measure", "name", "value"),
    [
        ("stream", "cpu_us_per_event", 36.1),
        ("cold", "cpu_us_per_request", 720.1),
        ("turns", "cpu_us", 600.1),
        ("isolation", "beside_p99_us", 3000.1),
        ("refused_unread", "cpu_us_per_request", 60.1),
        ("refused_counted", "cpu_us_per_request", 120.1),
        ("storm", "twice_p50_us", 150.1),
        ("memory", "bytes_per_stream", 17_001.0),
        ("scrape", "stall_ms", 5.01),
        ("start", "wall_ms", 160.1),
    ],
)
def test_a_figure_beyond_its_bound_fails_one_goal(measure: str, name: str, value: float) -> None:
    figures = good()
    figures.all = [one for one in figures.all if (one.measure, one.proxy, one.name) != (measure, "llmshed", name)]
    figures.note(measure, "llmshed", 1, **{name: value})
    (failed,) = not_met(figures)
    assert failed.met is False


def test_a_request_is_held_against_two_routers() -> None:
    figures = good()
    figures.all = [one for one in figures.all if (one.measure, one.proxy) != ("request", "llmshed")]
    figures.note("request", "llmshed", 1, cpu_us_per_request=180.1)
    assert [goal.beside for goal in not_met(figures)] == ["smg", "litellm"]


def test_long_prompts_may_cost_four_times_the_lateness_where_that_is_more_than_3_ms() -> None:
    figures = good()
    figures.all = [one for one in figures.all if one.measure != "isolation"]
    figures.note("isolation", "llmshed", 1, alone_p99_us=1000.0, beside_p99_us=4000.0)
    assert not_met(figures) == []


def test_what_was_not_measured_is_neither_met_nor_not() -> None:
    assert {goal.met for goal in goals(Figures())} == {None}
    figures = good()
    figures.all = [one for one in figures.all if one.proxy != "litellm"]
    figures.miss("litellm", "no wheel fits")
    text = section(figures)
    assert text.count("not measured") == 2
    assert "litellm was not measured: no wheel fits." in text
    assert "not met" not in text


@pytest.mark.parametrize(("relayed", "busy"), [(15_000.0, False), (14_250.0, False), (14_249.0, True)])
def test_a_run_beside_other_work_says_so(relayed: float, *, busy: bool) -> None:
    figures = good()
    figures.note("stream", "nginx", 1, events_per_second=relayed)
    assert ("**The machine had other work**" in section(figures)) is busy


def test_failed_answers_are_told() -> None:
    figures = good()
    assert "failed" not in section(figures)
    figures.note("stream", "smg", 1, failures=2)
    figures.note("request", "smg", 1, failures=3)
    assert "Answers that failed, in all rounds: smg 5." in section(figures)


def test_only_what_stands_between_the_markers_is_replaced() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert put_into(page, good()) == f"before\n{BEGIN}\n{section(good())}{END}\nafter\n"
    with pytest.raises(ValueError, match="lacks"):
        put_into("no markers", good())
