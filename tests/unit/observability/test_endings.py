"""Endings and termination codes."""

from llmshed.observability.endings import EndedBy, Ending, Phase, termination


def test_termination_codes_are_two_letters_and_each_is_one_place() -> None:
    codes = {termination(by, phase) for by in EndedBy for phase in Phase}
    assert len(codes) == len(EndedBy) * len(Phase)
    assert all(len(code) == 2 for code in codes)
    assert termination(EndedBy.NOBODY, Phase.COMPLETE) == "--"
    assert termination(EndedBy.CLIENT, Phase.DECODE) == "CD"


def test_a_request_has_one_of_five_endings() -> None:
    assert {ending.value for ending in Ending} == {"finished", "refused", "evicted", "cancelled", "failed"}
