"""A request for more GPUs holds all that it has to, and says what is open."""

from fakes.reviews import FOUND, NOTHING
from llmshed.rendering.capacity_request import OPEN, Stated, capacity_request


def test_it_holds_model_objective_locality_sizes_concurrency_and_refused_demand() -> None:
    text = capacity_request(FOUND, Stated("llama 8B", "TTFT p95 of 2 s", "eu-west"))
    assert "- **Model**: llama 8B (profiles in use: a@1)" in text
    assert "- **Objective**: TTFT p95 of 2 s" in text
    assert "- **Locality**: eu-west" in text
    assert "| interactive | 400 | - | 100 | - | - | - |" in text
    assert "| <main> | - | 64 | 50.0 % | - |" in text
    assert "| interactive | queue_full | 100 | 50,000 | 16.7 |" in text


def test_what_is_not_stated_is_marked() -> None:
    assert capacity_request(NOTHING, Stated()).count(OPEN) == 3
