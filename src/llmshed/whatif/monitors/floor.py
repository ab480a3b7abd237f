"""Which bulk was dispatched above its floor since a request came; the package's text has the two bounds."""

from collections.abc import Iterator

from llmshed.whatif.monitors.seen import Account, BulkDispatch, Seen

ROUNDING_TOKENS = 1e-6
"""By how much a sum of floats may differ from what a controller adds up in another order."""


def bulk_above_floor(account: Account, since: Seen, largest_bulk_tokens: int) -> Iterator[BulkDispatch]:
    """Yield the bulk dispatches of a replica that went beyond the floor after a request came.

    Where no prefill rate is known, only reserved tokens are bounded.
    """
    rate = account.budget.prefill_tokens_per_second
    owed_per_second = None if rate is None else account.budget.bulk.prefill_floor_ratio * rate
    input_tokens = 0
    for one in account.bulk:
        if one.order < since.order:
            continue
        input_tokens += one.input_tokens
        owed = None if owed_per_second is None else owed_per_second * (one.at - since.at) + largest_bulk_tokens
        if not one.within_reserved or (owed is not None and input_tokens > owed + ROUNDING_TOKENS):
            yield one
