"""Whether a replica is the one that a profile was measured on, field by field.

For each field f of the fingerprint, with m(f) what was measured and s(f) what the replica is seen to be:

    match        m(f) = s(f)
    mismatch     both are known and differ
    unverified   either is unknown

What the engine tells outranks what the operator declares, since a declaration does not change when a replica does.
Fields are grouped into kinds, few enough for the labels of a metric; a kind is as bad as its worst field.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from llmshed.profile.fingerprint import Fingerprint

Fact = str | int
Facts = Mapping[str, Fact]
"""What is known, by the name of the field as in `[fingerprint]`; a limit is `limits.max_input_tokens`."""


class Match(StrEnum):
    """What a comparison found."""

    MATCH = "match"
    UNVERIFIED = "unverified"
    MISMATCH = "mismatch"


class Kind(StrEnum):
    """A group of fields; the value is a metric's label."""

    MODEL = "model"
    ENGINE = "engine"
    PRECISION = "precision"
    HARDWARE = "hardware"
    LIMITS = "limits"
    TOKENIZER = "tokenizer"
    PREFILL_PACE = "prefill_pace"
    """How fast prompts are processed, seen from live traffic."""
    DECODE_PACE = "decode_pace"
    """How fast tokens are produced, likewise."""


KINDS: Mapping[str, Kind] = {
    "model_id": Kind.MODEL,
    "model_revision": Kind.MODEL,
    "engine": Kind.ENGINE,
    "engine_version": Kind.ENGINE,
    "dtype": Kind.PRECISION,
    "quantization": Kind.PRECISION,
    "parallelism": Kind.HARDWARE,
    "gpu": Kind.HARDWARE,
    "gpu_count": Kind.HARDWARE,
    "tokenizer_sha256": Kind.TOKENIZER,
    "template_sha256": Kind.TOKENIZER,
    "limits.max_input_tokens": Kind.LIMITS,
    "limits.max_total_tokens": Kind.LIMITS,
    "limits.max_batch_total_tokens": Kind.LIMITS,
    "limits.max_batch_prefill_tokens": Kind.LIMITS,
    "limits.max_concurrent_requests": Kind.LIMITS,
}
"""Every field that identifies a replica, with its kind; date, workload and behaviour are no facts of that sort."""

_WORST_LAST = (Match.MATCH, Match.UNVERIFIED, Match.MISMATCH)


@dataclass(frozen=True, slots=True)
class Compared:
    """One field: what was measured and what is seen, None where that is unknown."""

    field: str
    match: Match
    measured: Fact | None
    seen: Fact | None

    @property
    def kind(self) -> Kind:
        """Return the group of the field."""
        return KINDS[self.field]

    def __str__(self) -> str:
        return f"{self.field}: {_shown(self.measured)} in the profile, {_shown(self.seen)} now"


def measured_facts(fingerprint: Fingerprint) -> dict[str, Fact]:
    """Return the fields that the fingerprint records."""
    told = fingerprint.model_dump(exclude={"limits", "behaviour", "date", "workload"}, exclude_none=True)
    limits = fingerprint.limits.model_dump(exclude_none=True)
    return told | {f"limits.{name}": value for name, value in limits.items()}


def compare(measured: Facts, told: Facts, declared: Facts) -> tuple[Compared, ...]:
    """Compare every field: what was measured with what the replica tells, else with what the operator declares."""
    return tuple(_compared(name, measured.get(name), told.get(name, declared.get(name))) for name in KINDS)


def contradicted(told: Facts, declared: Facts) -> tuple[str, ...]:
    """Return what an operator declares and the replica tells otherwise, one sentence each."""
    return tuple(
        f"{name} is declared as {_shown(fact)}, and the replica tells {_shown(told[name])}"
        for name, fact in declared.items()
        if name in told and not _same(fact, told[name])
    )


def worst(matches: Iterable[Match]) -> Match:
    """Return the worst of some results: a mismatch, else unverified; of none it is unverified."""
    return max(matches, key=_WORST_LAST.index, default=Match.UNVERIFIED)


def by_kind(compared: Iterable[Compared]) -> dict[Kind, Match]:
    """Return what was found for each kind that has a field among these."""
    grouped: dict[Kind, list[Match]] = {}
    for one in compared:
        grouped.setdefault(one.kind, []).append(one.match)
    return {kind: worst(matches) for kind, matches in grouped.items()}


def _compared(name: str, measured: Fact | None, seen: Fact | None) -> Compared:
    if measured is None or seen is None:
        match = Match.UNVERIFIED
    else:
        match = Match.MATCH if _same(measured, seen) else Match.MISMATCH
    return Compared(name, match, measured, seen)


def _same(one: Fact, other: Fact) -> bool:
    return _plain(one) == _plain(other)


def _plain(fact: Fact) -> Fact:
    """Return a fact as it is compared: `torch.Float16`, as TGI 1 and 2 tell it, is float16."""
    return fact.strip().casefold().removeprefix("torch.") if isinstance(fact, str) else fact


def _shown(fact: Fact | None) -> str:
    if fact is None:
        return "unknown"
    return f"{fact:,}" if isinstance(fact, int) else fact
