"""A request for more GPUs, in Markdown: what such a request has to say, and never a rate of requests alone.

A rate of requests says nothing: a hundred short chats a second and a hundred long documents are different machines.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from llmshed.rendering.figures import count, duration, number, share
from llmshed.review.figures import Review

OPEN = "to be filled in"


@dataclass(frozen=True, slots=True)
class Stated:
    """What no metric tells, in the operator's words; empty where it is still to be filled in.

    Args:
        model: name and revision of the model.
        objective: what is promised to callers.
        locality: where the replicas have to stand, and how much of the prompts is shared.
    """

    model: str = ""
    objective: str = ""
    locality: str = ""


def capacity_request(review: Review, stated: Stated) -> str:
    """Return the request as Markdown."""
    return "\n".join(_lines(review, stated)) + "\n"


def _lines(review: Review, stated: Stated) -> Iterator[str]:
    yield "# Request for capacity"
    yield ""
    yield f"From what was seen in the last {duration(review.span_seconds)}."
    yield ""
    profiles = f" (profiles in use: {', '.join(review.profiles)})" if review.profiles else ""
    yield f"- **Model**: {stated.model or OPEN}{profiles}"
    yield f"- **Objective**: {stated.objective or OPEN}"
    yield f"- **Locality**: {stated.locality or f'{OPEN}: region, and how much of the prompts is shared'}"
    yield ""
    yield "## Input and output"
    yield "| lane | prompt, mean | p95 | output asked, mean | p95 | output made, mean | p95 |"
    yield "|---|---|---|---|---|---|---|"
    for one in review.sizes:
        yield f"| {one.lane} | {' | '.join(map(count, one[1:]))} |"
    yield ""
    yield "## Concurrency"
    yield "| pool | sequences at once, mean | at most | reserved of the budget, mean | at most |"
    yield "|---|---|---|---|---|"
    for pool in review.pools:
        shares = f"{share(pool.utilised)} | {share(pool.utilised_most)}"
        yield f"| {pool.pool} | {number(pool.running_mean)} | {count(pool.running_most)} | {shares} |"
    yield ""
    yield "## Demand that was refused"
    yield "| lane | reason | requests | tokens (estimate) | tokens a second (estimate) |"
    yield "|---|---|---|---|---|"
    for refused in review.refused:
        rate = None if refused.tokens is None else refused.tokens / review.span_seconds
        row = (refused.lane, refused.reason, count(refused.requests), count(refused.tokens), number(rate))
        yield f"| {' | '.join(row)} |"
    yield ""
    for served in review.served:
        yield f"Of {served.lane} {count(served.requests)} were served; {share(served.good)} met their objectives."
