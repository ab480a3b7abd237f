"""Sums over the sequences of a request, and the order of service."""

from itertools import pairwise, product

from llmshed.admission.request import SERVICE_RANKS, Lane, PriorityClass, Request, service_rank


def test_sequences_and_input_count_every_prompt_in_every_copy() -> None:
    request = Request(1, "t", "m", (100, 300), copies=2)

    assert (request.sequences, request.input_tokens, request.longest_prompt_tokens) == (4, 800, 300)


def test_every_interactive_class_is_served_before_any_of_bulk_and_high_before_low() -> None:
    in_order = list(product((Lane.INTERACTIVE, Lane.BULK), PriorityClass))
    ranks = [service_rank(lane, priority_class) for lane, priority_class in in_order]

    assert all(before < after for before, after in pairwise(ranks))
    assert ranks == list(range(SERVICE_RANKS))
