"""A review as one page: the answer in sentences, drawings of what was refused and used, then every table."""

from collections.abc import Iterator

from llmshed.rendering.figures import count, duration, share
from llmshed.rendering.page import Figure, Page, Section
from llmshed.rendering.plots import Caption, bars
from llmshed.rendering.review_tables import notes, review_tables
from llmshed.review.figures import WHOLE_RATIO, Review


def summary(review: Review) -> tuple[str, ...]:
    """Return what a review comes to, in a few sentences."""
    served, refused = sum(one.requests for one in review.served), sum(one.requests for one in review.refused)
    tokens = "" if review.refused_tokens is None else f", about {count(review.refused_tokens)} tokens"
    told = [f"{count(served)} requests were served and {count(refused)} refused{tokens}."]
    told += [f"{one.lane}: {share(one.good)} met their objectives." for one in review.served if one.good is not None]
    if review.waiting:
        longest = review.waiting[0]
        told.append(f"The longest wait was {duration(longest.oldest_seconds)}, of {longest.lane} in {longest.pool}.")
    told += [
        f"Pool {one.pool} ran {one.lanes[0]} alone and was idle for {share(one.idle)} of the time."
        for one in review.pools
        if one.dedicated and one.idle is not None
    ]
    return (*told, *notes(review, WHOLE_RATIO))


def review_page(review: Review, facts: tuple[tuple[str, str], ...], version: str, *, drawn: bool = True) -> Page:
    """Return the page; `version` is llmshed's own, `drawn` False leaves the drawings out.

    Raises:
        MissingPlotsError: drawings are wanted and matplotlib is not installed.
    """
    sections = [Section("All figures", tables=review_tables(review))]
    if drawn and (figures := tuple(_figures(review))):
        sections.insert(0, Section("At a glance", figures=figures))
    return Page("Review", summary(review), facts, tuple(sections), f"llmshed {version}")


def _figures(review: Review) -> Iterator[Figure]:
    refused: dict[str, dict[str, float]] = {}
    for one in review.refused:
        refused.setdefault(one.lane, {})[one.reason] = one.requests
    if refused:
        words = "; ".join(f"{one.lane}, {one.reason}: {count(one.requests)}" for one in review.refused)
        yield Figure(bars(Caption("refused", "Refused requests", words, "requests"), refused), "Refused, by reason.")
    used = {
        one.pool: {"utilised": 100 * one.utilised, "idle": 100 * (one.idle or 0.0)}
        for one in review.pools
        if one.utilised is not None
    }
    if used:
        words = "; ".join(f"{pool}: utilised {shares['utilised']:.0f} %" for pool, shares in used.items())
        caption = Caption("used", "How pools were used", words, "% of the budget, and of the time")
        yield Figure(bars(caption, used), "Mean share of the budget that was reserved, and of the time without work.")
