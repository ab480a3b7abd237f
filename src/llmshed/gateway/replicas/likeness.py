"""Whether one replica is what its profile was measured on, and what the pool makes of it when it is not."""

import logging
from collections.abc import Mapping
from typing import Protocol

from llmshed.errors import LlmshedError
from llmshed.gateway.replicas.facts import declared_facts, told_facts
from llmshed.gateway.replicas.pool_tools import PoolPlan
from llmshed.gateway.replicas.selfcheck import SelfCheck
from llmshed.gateway.replicas.serving import Serving
from llmshed.profile.comparison import Compared, Kind, Match, by_kind, compare, contradicted, measured_facts

_log = logging.getLogger(__name__)


class ProfileMismatchError(LlmshedError):
    """A replica is not what its profile was measured on, and its pool refuses it for that."""


class LikenessObserver(Protocol):
    """Who shows what the comparison finds."""

    def profile_compared(self, replica: str, kind: Kind, match: Match) -> None:
        """Show how one kind of facts of a replica compares with its profile."""

    def profile_kept(self, replica: str, ratio: float) -> None:
        """Show the share of its safe budget that the comparison leaves a replica."""

    def profile_forgotten(self, replica: str) -> None:
        """Show no comparison of a replica."""

    def count_mismatched(self, pool: str) -> None:
        """Count a prompt that the engine counted otherwise."""


class Likeness:
    """Compares one replica for as long as it is configured, whether it serves or not.

    What its pace was found to be outlives the watch that found it, or a replica that was refused for it would come
    back at once: it counts until the pace is judged anew, or the replica, its pool or its profile is another one.
    """

    def __init__(self, name: str, plan: PoolPlan, observer: LikenessObserver, *, simulated: bool) -> None:
        """Compare by `plan`; a replica that this process simulates is what its profile says, as far as not told."""
        self._name = name
        self._plan = plan
        self._observer = observer
        self._simulated = simulated
        self._compared: tuple[Compared, ...] = ()
        self._counts: tuple[str, ...] = ()
        self._paces: dict[Kind, Match] = {}
        self._ratios: Mapping[Kind, float] = {}
        self._shown: dict[Kind, Match] = {}
        self._differences: tuple[str, ...] = ()
        self._unverified: tuple[str, ...] = ()
        self._told_of_last = False

    def follow(self, plan: PoolPlan) -> None:
        """Go on by another plan; what a changed one makes of the replica shows when it is met anew."""
        if not plan.same_as(self._plan):
            self.lost()
        self._plan = plan

    def met(self, serving: Serving) -> None:
        """Compare what a replica told when it was met."""
        profile = self._plan.profile
        if profile is None:
            self._compared, self._differences, self._unverified, self._shown = (), (), (), {}
            self._observer.profile_forgotten(self._name)
            return
        measured, told = measured_facts(profile.fingerprint), told_facts(self._plan.settings, serving)
        declared = measured if self._simulated else declared_facts(self._plan.settings.declared)
        compared = compare(measured, told, declared)
        if _identity(compared) != _identity(self._compared):
            self.lost()
        self._compared, self._counts = compared, ()
        for sentence in contradicted(told, {} if self._simulated else declared):
            self._warn("declaration_contradicted", detail=sentence)
        self._tell_unverified()
        self._refresh()

    def recounted(self, found: SelfCheck) -> None:
        """Take in probes that were counted again while it serves; they agreed when it was met."""
        for _ in found.mismatches:
            self._observer.count_mismatched(self._plan.settings.name)
        counts = tuple(f"token counts: {mismatch}" for mismatch in found.mismatches)
        if found.compared and counts != self._counts:
            self._counts = counts
            self._refresh()

    def paced(self, matches: Mapping[Kind, Match], ratios: Mapping[Kind, float]) -> None:
        """Take in what live traffic shows of its pace; what it does not show yet leaves what was known before."""
        self._ratios = ratios
        known = {kind: match for kind, match in matches.items() if match is not Match.UNVERIFIED}
        if known.items() <= self._paces.items():
            return
        self._paces |= known
        self._refresh()

    def lost(self) -> None:
        """Believe nothing of its pace any more: what comes back may be another process."""
        self._paces.clear()

    def forgotten(self) -> None:
        """Show nothing more of a replica that is configured no longer."""
        self._observer.profile_forgotten(self._name)

    @property
    def kept_ratio(self) -> float:
        """Return the share of its safe budget that the replica may lend."""
        derates = bool(self._differences) and self._plan.settings.on_mismatch != "warn"
        return 1.0 - self._plan.settings.derate_ratio if derates else 1.0

    @property
    def refusal(self) -> str | None:
        """Return why the replica is to be kept out unless it is the last of its pool, or None.

        In observe mode nothing is kept out.
        """
        observes = self._plan.config.admission.mode == "observe"
        if not self._differences or observes or self._plan.settings.on_mismatch != "refuse":
            return None
        return f"it is not what its profile was measured on: {'; '.join(self._differences)}"

    def kept_as_last(self) -> None:
        """Say once that a replica that differs serves on, since its pool has no other."""
        if not self._told_of_last:
            self._told_of_last = True
            self._warn("replica_kept_as_last", detail=self.refusal, kept_ratio=self.kept_ratio)

    def _refresh(self) -> None:
        """Show and log what has changed."""
        if self._plan.profile is None:
            return
        matches = dict.fromkeys(Kind, Match.UNVERIFIED) | by_kind(self._compared) | self._paces
        if self._counts:
            matches[Kind.TOKENIZER] = Match.MISMATCH
        for kind, match in matches.items():
            if self._shown.get(kind) is not match:
                self._observer.profile_compared(self._name, kind, match)
        self._shown = matches
        differences = (*self._counts, *self._differing_fields(), *self._differing_paces())
        before, self._differences = self._differences, differences
        self._observer.profile_kept(self._name, self.kept_ratio)
        if _heads(differences) == _heads(before):
            return
        if differences:
            self._told_of_last = False
            settings = self._plan.settings
            self._warn(
                "profile_mismatch",
                fields=list(differences),
                on_mismatch=settings.on_mismatch,
                kept_ratio=self.kept_ratio,
            )
        else:
            _log.info("profile_matches_again", extra=self._facts())

    def _differing_fields(self) -> tuple[str, ...]:
        return tuple(str(one) for one in self._compared if one.match is Match.MISMATCH)

    def _differing_paces(self) -> tuple[str, ...]:
        return tuple(
            f"{kind}: {self._ratios.get(kind, 0.0):.2f} times the seconds that the profile leads to expect"
            for kind, match in self._paces.items()
            if match is Match.MISMATCH
        )

    def _tell_unverified(self) -> None:
        fields = tuple(one.field for one in self._compared if one.match is Match.UNVERIFIED)
        if fields != self._unverified and fields:
            unknown = [one for one in self._compared if one.match is Match.UNVERIFIED]
            self._warn(
                "profile_unverified",
                not_recorded=[one.field for one in unknown if one.measured is None],
                not_told=[one.field for one in unknown if one.measured is not None],
            )
        self._unverified = fields

    def _facts(self) -> dict[str, object]:
        profile = self._plan.profile
        label = None if profile is None else profile.label
        return {"replica": self._name, "pool": self._plan.settings.name, "profile": label}

    def _warn(self, event: str, **facts: object) -> None:
        _log.warning(event, extra=self._facts() | facts)


def _identity(compared: tuple[Compared, ...]) -> tuple[object, ...]:
    return tuple((one.measured, one.seen) for one in compared)


def _heads(differences: tuple[str, ...]) -> tuple[str, ...]:
    """Return what differs without by how much, which a pace changes with each window."""
    return tuple(difference.partition(":")[0] for difference in differences)
