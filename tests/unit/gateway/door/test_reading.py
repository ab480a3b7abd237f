import pytest

from llmshed.admission.policy import PoolPolicy
from llmshed.admission.reasons import Reason
from llmshed.admission.request import Lane
from llmshed.engines.base import BodyError
from llmshed.gateway.door.reading import pool_of

POOLS = (
    PoolPolicy("fast", "org/small", frozenset({"tgi"}), frozenset({Lane.INTERACTIVE})),
    PoolPolicy("slow", "org/small", frozenset({"tgi", "cheap"}), frozenset({Lane.BULK})),
    PoolPolicy("big", "org/large", frozenset(), frozenset({Lane.INTERACTIVE, Lane.BULK})),
)


@pytest.mark.parametrize(
    ("body", "pool"),
    [
        ({}, "fast"),
        ({"model": None}, "fast"),
        ({"model": "tgi"}, "fast"),
        ({"model": "org/small"}, "fast"),
        ({"model": "cheap"}, "slow"),
        ({"model": "org/large"}, "big"),
        ({"model": 5}, "fast"),  # refused by the engine's adapter, which names the field
    ],
)
def test_a_body_leads_to_the_first_pool_of_its_model(body: dict[str, object], pool: str) -> None:
    assert pool_of(POOLS, body, lambda _: True).name == pool
    assert pool_of(POOLS, body, lambda _: False).name == pool


@pytest.mark.parametrize("body", [{}, {"model": "org/small"}, {"model": "tgi"}])
def test_a_pool_that_was_never_met_leaves_the_work_to_the_next_of_its_model(body: dict[str, object]) -> None:
    assert pool_of(POOLS, body, {"slow", "big"}.__contains__).name == "slow"


def test_who_names_no_model_is_served_by_another_while_the_first_was_never_met() -> None:
    assert pool_of(POOLS, {}, {"big"}.__contains__).name == "big"
    assert pool_of(POOLS, {}, {"big", "slow"}.__contains__).name == "slow"
    assert pool_of(POOLS, {"model": "tgi"}, {"big"}.__contains__).name == "fast", "that model has a name"


@pytest.mark.parametrize("model", ["", "org/other", "ORG/SMALL", " tgi"])
def test_an_unknown_model_is_told_with_those_that_are_served(model: str) -> None:
    with pytest.raises(BodyError, match=r"Models: org/small, org/large\.") as caught:
        pool_of(POOLS, {"model": model}, lambda _: True)
    assert (caught.value.reason, caught.value.param) == (Reason.NOT_FOUND, "model")
