"""From traced requests to what is sent."""

from llmshed.admission.request import Intent, PriorityClass
from llmshed.loadtest.plan import DEFAULT_CEILING, Lengths, Planner, Prefixes
from llmshed.loadtest.prompts import Part
from llmshed.simulation.prefixes import PromptBlocks
from llmshed.workload.ceilings import CeilingRule
from llmshed.workload.request import TracedRequest

ONE = TracedRequest(1.5, 100, 20, asked_output_tokens=64, intent=Intent.BULK, blocks=PromptBlocks((7, 9), 32))


def planner(
    rule: CeilingRule = CeilingRule.ASKED,
    lengths: Lengths = Lengths.MODEL,
    prefixes: Prefixes = Prefixes.TRACE,
    *,
    declares: bool = False,
) -> Planner:
    return Planner(rule, lengths, prefixes, 9, declares=declares)


def test_lengths_instants_and_shared_parts_are_those_of_the_trace() -> None:
    (planned,) = planner().planned([ONE])
    assert (planned.at_seconds, planned.ask.input_tokens, planned.ask.ceiling_tokens) == (1.5, 100, 64)
    assert (planned.ask.runs_to_ceiling, planned.ask.lane) == (False, "bulk")
    assert planned.parts == (Part("block/7", 32), Part("block/9", 32))
    assert planned.headers == {}


def test_answers_can_end_as_in_the_trace_and_prompts_share_nothing() -> None:
    (planned,) = planner(lengths=Lengths.TRACE, prefixes=Prefixes.NONE).planned([ONE])
    assert (planned.ask.ceiling_tokens, planned.ask.runs_to_ceiling, planned.parts) == (20, True, ())


def test_ceilings_come_by_their_rule() -> None:
    bare = TracedRequest(0.0, 100, 20)
    rules = (CeilingRule.ASKED, CeilingRule.POW2, CeilingRule.FLAT4096)
    ceilings = [next(planner(rule).planned([bare])).ask.ceiling_tokens for rule in rules]
    assert ceilings == [DEFAULT_CEILING, 32, 4096]


def test_each_sequence_is_a_request_of_its_own_and_names_differ() -> None:
    planned = list(planner().planned([TracedRequest(0.0, 100, 20, copies=3), ONE]))
    assert [one.ask.id for one in planned] == ["0.0", "0.1", "0.2", "1"]


def test_prompts_too_short_to_be_made_are_made_longer_and_counted() -> None:
    ours = planner()
    lengths = [one.ask.input_tokens for one in ours.planned([TracedRequest(0.0, 3, 1), TracedRequest(0.0, 9, 1)])]
    assert (lengths, ours.raised) == ([9, 9], 1)


def test_a_gateway_is_told_what_a_request_declares() -> None:
    told = TracedRequest(0.0, 9, 1, intent=Intent.BULK, priority_class=PriorityClass.LOW, session="s")
    (planned,) = planner(declares=True).planned([told])
    assert planned.headers == {"x-llmshed-intent": "bulk", "x-llmshed-class": "low", "x-llmshed-session": "s"}
