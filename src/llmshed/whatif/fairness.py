"""Who got how much: Jain's index over tenants.

With x_i what tenant i got, the index is (sum x)^2 / (n sum x^2): 1 for equal parts, 1 / n where one has all. Source:
Jain, Chiu, Hawe, DEC-TR-301 (1984).
"""

from collections.abc import Sequence

from llmshed.whatif.report import Fairness, TenantUse

OTHERS = "(others)"
"""Name under which the tenants beyond the bound are counted together; no configuration can give it to a tenant."""


def jain_index(parts: Sequence[float]) -> float | None:
    """Return Jain's index of non-negative parts; None when there are none or all are zero."""
    squares = sum(part * part for part in parts)
    return sum(parts) ** 2 / (len(parts) * squares) if squares else None


class TenantTally:
    """What tenants asked for and got; those that come after `most` others are counted together."""

    def __init__(self, most: int) -> None:
        """Start with none."""
        self._most = most
        self._offered: dict[str, int] = {}
        self._served: dict[str, int] = {}

    def offer(self, tenant: str, tokens: int) -> None:
        """Note what a request would need."""
        name = self._name(tenant)
        self._offered[name] = self._offered.get(name, 0) + tokens

    def serve(self, tenant: str, tokens: int) -> None:
        """Note what a request that was offered before got."""
        name = self._name(tenant)
        self._served[name] = self._served.get(name, 0) + tokens

    def fairness(self) -> Fairness:
        """Return the figures; the indices leave out those that are counted together, who are no one tenant."""
        uses = tuple(TenantUse(name, offered, self._served.get(name, 0)) for name, offered in self._offered.items())
        told_apart = [use for use in uses if use.tenant != OTHERS]
        return Fairness(
            jain_served_tokens=jain_index([use.served_tokens for use in told_apart]),
            jain_served_share=jain_index([use.served_tokens / use.offered_tokens for use in told_apart]),
            tenants=uses,
        )

    def _name(self, tenant: str) -> str:
        return tenant if tenant in self._offered or len(self._offered) < self._most else OTHERS
