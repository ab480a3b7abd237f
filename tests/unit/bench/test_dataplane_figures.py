"""Figures of the data plane's bench: medians, ratios of the same round, and what is kept."""

from dataplane.figures import Figure, Figures, from_csv, to_csv


def three_rounds() -> Figures:
    figures = Figures()
    for number, (ours, theirs) in enumerate([(30.0, 20.0), (90.0, 30.0), (22.0, 20.0)], start=1):
        figures.note("stream", "llmshed", number, cpu_us_per_event=ours, failures=0)
        figures.note("stream", "nginx", number, cpu_us_per_event=theirs)
    return figures


def test_a_ratio_is_the_median_of_the_rounds_own_ratios() -> None:
    figures = three_rounds()
    assert figures.middle("stream", "llmshed", "cpu_us_per_event") == 30.0
    assert figures.middle("stream", "nginx", "cpu_us_per_event") == 20.0
    assert figures.ratio("stream", "llmshed", "nginx", "cpu_us_per_event") == 1.5  # of 1.5, 3 and 1.1


def test_what_was_not_seen_has_neither_median_nor_ratio() -> None:
    figures = three_rounds()
    figures.note("stream", "smg", 1, cpu_us_per_event=None)
    figures.note("stream", "idle", 1, cpu_us_per_event=0.0)
    assert figures.middle("stream", "smg", "cpu_us_per_event") is None
    assert figures.ratio("stream", "llmshed", "smg", "cpu_us_per_event") is None
    assert figures.ratio("stream", "llmshed", "idle", "cpu_us_per_event") is None
    assert figures.proxies("stream") == ["llmshed", "nginx", "idle"]


def test_figures_and_reasons_come_back_as_they_were_kept() -> None:
    figures = three_rounds()
    figures.miss("litellm", 'it said: "no, never"')
    again = from_csv(to_csv(figures))
    assert again.all == figures.all
    assert again.absent == {"litellm": 'it said: "no, never"'}
    assert again.all[0] == Figure("stream", "llmshed", 1, "cpu_us_per_event", 30.0)
