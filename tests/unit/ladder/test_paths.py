import pytest

from fakes.ladders import shipped, small
from fakes.rungs import cap, rung
from llmshed.ladder.model import Rung
from llmshed.ladder.paths import changing, path_of, target_of, terms_of

LADDER = small("""
action = "stop_bulk"
action = "drop_enrichment"
action = "cap_output"; max_output_tokens = 400; scope = { classes = ["low"] }
action = "cap_output"; max_output_tokens = 200; scope = { classes = ["normal"], tenants = ["a"] }
action = "smaller_model"; pool = "small"; scope = { classes = ["low", "normal"], tenants = ["b"] }
action = "shed_interactive"; scope = { classes = ["low"] }
""")


def named(name: str) -> Rung:
    number = LADDER.rung_number(name)
    assert number is not None
    return LADDER.rungs[number - 1]


def test_rungs_that_refuse_people_have_nothing_to_evaluate() -> None:
    assert [rung.name for rung in changing(LADDER)] == ["r2", "r3", "r4", "r5"]
    assert changing(shipped("source")) == ()


@pytest.mark.parametrize(
    ("name", "met"),
    [("r2", ["r2"]), ("r3", ["r2", "r3"]), ("r4", ["r2", "r4"]), ("r5", ["r2", "r3", "r5"])],
)
def test_a_path_is_a_rung_with_those_below_it_that_the_same_request_may_meet(name: str, met: list[str]) -> None:
    # r4 touches other classes than r3, and other tenants than r5.
    assert [rung.name for rung in path_of(LADDER, named(name))] == met


def test_the_pool_that_answers_is_the_last_one_that_a_path_names() -> None:
    assert target_of(path_of(LADDER, named("r4"))) is None
    assert target_of(path_of(LADDER, named("r5"))) == "small"
    thinking = rung("think", action="disable_thinking", pool="plain")
    assert target_of((thinking, named("r5"))) == "small"


def test_terms_differ_whenever_what_is_done_does() -> None:
    assert terms_of(path_of(LADDER, named("r5"))) == ("drop_enrichment", "cap_output 400", "smaller_model small")
    paths = (
        rung("a", **cap(400)), rung("b", **cap(401)),
        rung("a", action="shrink_context", drop_share=0.5), rung("a", action="shrink_context", drop_share=0.25),
        rung("a", action="disable_thinking", prompt_suffix="/no_think"),
        rung("a", action="disable_thinking", template_argument="enable_thinking"),
        rung("a", action="disable_thinking", pool="plain"), rung("a", action="smaller_model", pool="plain"),
        rung("a", action="drop_enrichment"),
    )  # fmt: skip
    assert len({terms_of((one,)) for one in paths}) == len(paths)
    assert terms_of((rung("renamed", **cap(400)),)) == terms_of((paths[0],))
