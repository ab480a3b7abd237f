"""Whether a gate's ledger, as far as it tells of it, is the sum of the reservations that it told."""

from llmshed.admission.actions import Dispatch, Released
from llmshed.whatif.monitors.seen import Sight


def unlike_told(sight: Sight, action: Dispatch | Released) -> list[str]:
    """Return a sentence if a dispatch was decided on other active tokens, or another sum is given back than was taken.

    To be asked before the action is seen. A verdict without an equation tells nothing.
    """
    account = sight.accounts[action.replica]
    if isinstance(action, Released):
        taken = account.charges[action.key].tokens
        return [] if action.tokens == taken else [f"request {action.key} took {taken} and gave {action.tokens} back"]
    equation = action.verdict.equation
    if equation is None or equation.active_tokens == account.reserved_tokens:
        return []
    told = f"request {action.key} was sent to {action.replica} on {equation.active_tokens} active tokens"
    return [f"{told}, the reservations there sum to {account.reserved_tokens}"]
