import re

import pytest

from fakes.whatif_runs import part, run, unserved
from llmshed.rendering.page import render_page
from llmshed.rendering.whatif_page import WhatifResult, summary, whatif_page
from llmshed.whatif.compare import difference

FACTS = {"trace": "azure.csv", "seed": "0"}
RUNS = tuple(
    run(policy, scale, part(good))
    for scale, goods in ((1.0, (900, 900)), (2.5, (890, 400)))
    for policy, good in zip(("ours", "none"), goods, strict=True)
)


@pytest.fixture(scope="module")
def page() -> str:
    return render_page(whatif_page(WhatifResult(FACTS, RUNS, warnings=("Take care.",)), "1.2.3"))


def headings(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>([^<]*)</h2>", page)


def drawings(page: str) -> list[str]:
    return re.findall(r'<title id="[^"]*">([^<]*)</title>', page)


def test_the_summary_tells_each_policy_at_the_lowest_and_the_highest_scale() -> None:
    ours, none = summary(WhatifResult(FACTS, RUNS))
    attained = "where 90.0 % of requests met their objectives"
    assert ours == f"ours: 2,250 good tokens/s at 1x, {attained}; 2,225 at 2.5x, 89.0 %."
    assert none == f"none: 2,250 good tokens/s at 1x, {attained}; 1,000 at 2.5x, 40.0 %."


def test_the_summary_of_one_scale_tells_it_once() -> None:
    (ours,) = summary(WhatifResult(FACTS, RUNS[:1]))
    assert ours == "ours: 2,250 good tokens/s at 1x, where 90.0 % of requests met their objectives."


def test_the_page_goes_from_the_answer_to_the_details(page: str) -> None:
    assert headings(page) == [
        "Before you believe it",
        "Against the rate of requests",
        "At 1x",
        "At 2.5x",
        "Lanes, classes and input quartiles",
        "Everything else",
    ]
    assert page.index("2,250 good tokens/s") < page.index("<svg")
    assert page.index("azure.csv") < page.index("Take care.")
    assert "llmshed 1.2.3" in page


def test_the_page_draws_goodput_times_refusals_and_the_cache(page: str) -> None:
    assert drawings(page) == [
        "Goodput against the rate",
        "Attainment against the rate",
        *(f"{what} at {scale}" for scale in ("1x", "2.5x") for what in ("TTFT", "Refused tries", "KV held")),
    ]


def test_every_identifier_of_the_page_is_unique_and_valid(page: str) -> None:
    names = re.findall(r'\bid="([^"]*)"', page)
    assert len(names) == len(set(names))
    assert not [name for name in names if not re.fullmatch(r"[A-Za-z][\w.-]*", name)]


def test_descriptions_tell_the_figures_to_those_who_do_not_see_them(page: str) -> None:
    assert "ours: 2,250 at 1x, 2,225 at 2.5x; none: 2,250 at 1x, 1,000 at 2.5x" in page


def test_without_drawings_every_figure_stays() -> None:
    bare = render_page(whatif_page(WhatifResult(FACTS, RUNS), "1.2.3", drawn=False))
    assert "<svg" not in bare
    assert headings(bare)[0] == "At 1x"
    assert "2,225" in bare


def test_one_scale_needs_no_curve_against_scales() -> None:
    page = render_page(whatif_page(WhatifResult(FACTS, RUNS[:2]), "1.2.3"))
    assert "Against the rate of requests" not in headings(page)


def test_the_other_configuration_has_its_section() -> None:
    other = run(configuration="b.toml")
    result = WhatifResult(FACTS, (RUNS[0], other), (difference(RUNS[0], other),))
    assert "What the other configuration changes" in headings(render_page(whatif_page(result, "1.2.3", drawn=False)))


def test_a_run_that_served_nothing_is_drawn_without_a_gap_in_the_page() -> None:
    runs = (run(total=unserved(), timeline=()), run(scale=2.0, total=unserved(), timeline=()))
    page = render_page(whatif_page(WhatifResult(FACTS, runs), "1.2.3"))
    assert "no time: nothing was served" in page
    assert not re.search(r"\bnan\b|None", page)


def test_names_from_outside_never_become_markup() -> None:
    hostile = run("ours", 1.0, part(refusals={"<b>x</b>": 3}), configuration="<script>alert(1)</script>")
    page = render_page(whatif_page(WhatifResult({"trace": "<img src=x>"}, (hostile, RUNS[0])), "1.2.3"))
    assert not re.search(r"<(script|img|b)\b", page)
    assert "&lt;script&gt;" in page


def test_the_same_result_gives_the_same_bytes(page: str) -> None:
    assert render_page(whatif_page(WhatifResult(FACTS, RUNS, warnings=("Take care.",)), "1.2.3")) == page
