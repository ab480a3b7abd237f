"""The counts of requests that were refused for their size, so that one which is sent again unchanged costs no count.

Clients that take a 413 for a passing trouble send the largest prompts of all again and again, and counting is the dear
part of refusing them. Only their counts are kept: whether they are still refused is asked of admission each time, so a
replica with more room, or other limits, lets them in at once. The counts hold for as long as the policy does: another
configuration or model may count otherwise.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from llmshed.admission.policy import AdmissionPolicy

MOST_REMEMBERED: Final = 10_000
MOST_PROMPTS: Final = 32
"""Prompts of a request that is remembered; longer lists would make the memory's bound meaningless."""
REMEMBERED_SECONDS: Final = 600.0


class RefusedSize(NamedTuple):
    """How large a refused request was.

    Args:
        prompt_tokens: input tokens of each prompt, in order.
        is_bound: whether they are only what the bytes of the request prove, and not a count.
        untruncated_tokens: count of all sequences before `truncate`; None without one.
    """

    prompt_tokens: tuple[int, ...]
    is_bound: bool = False
    untruncated_tokens: int | None = None


class RefusedSizes:
    """The sizes of requests that were refused for good, by the fingerprint of their bodies; the oldest go first."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        """Remember up to `most` of them."""
        self._most = most
        self._policy: AdmissionPolicy | None = None
        self._sizes: OrderedDict[str, tuple[float, RefusedSize]] = OrderedDict()  # when it is forgotten, and the size

    def __len__(self) -> int:
        """Return how many are remembered."""
        return len(self._sizes)

    def note(self, fingerprint: str, size: RefusedSize, policy: AdmissionPolicy, now: float) -> None:
        """Remember a request that was refused under this policy; of a long list of prompts nothing is kept."""
        if len(size.prompt_tokens) > MOST_PROMPTS:
            return
        self._hold_for(policy)
        self._sizes[fingerprint] = (now + REMEMBERED_SECONDS, size)
        self._sizes.move_to_end(fingerprint)
        if len(self._sizes) > self._most:
            self._sizes.popitem(last=False)

    def find(self, fingerprint: str, policy: AdmissionPolicy, now: float) -> RefusedSize | None:
        """Return the size of a request that was refused under this policy some minutes ago; None for any other."""
        self._hold_for(policy)
        forget_at, size = self._sizes.get(fingerprint, (now, None))
        return size if forget_at > now else None

    def _hold_for(self, policy: AdmissionPolicy) -> None:
        """Forget everything with the policy under which it was counted."""
        if policy is not self._policy:
            self._policy = policy
            self._sizes.clear()
