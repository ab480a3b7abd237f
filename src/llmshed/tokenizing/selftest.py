"""Whether prompts can make a tokenizer or its chat template slow or large: looked at, then tried."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from llmshed.errors import TokenizerError
from llmshed.tokenizing import slices
from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.build import described_as_adapted
from llmshed.tokenizing.files import EngineName, TokenizerFiles
from llmshed.tokenizing.paces import PROSE, Pace, paces
from llmshed.tokenizing.structure import Structure, structure
from llmshed.tokenizing.suspicions import Suspicion, backtracking, expansion
from llmshed.tokenizing.trial import try_template

SIZES_BYTES: Final = (16_384, 131_072)
MOST_RATIO: Final = 5.0
"""Times the processor time of prose that a string may take for its bytes."""
MOST_TOKEN_RATIO: Final = 1.5
"""Times the processor time of prose that a string may take for its tokens, of which bytes have one at most each.

Splitting a text and looking its pieces up takes some 3 us a piece whatever the pieces are. So a text whose every
character is a piece of its own is dearer for its bytes by what a token of prose has of them, 3.3 to 4.2, without any
work being lost; and its tokens are what it is charged for."""
MOST_STEEPENING: Final = 3.0
"""Times as long that a byte may take in the largest size as in the smallest: 8 would be the square."""
MOST_BYTES: Final = 300 * 2**20
"""How much the process may grow by counting."""
_LEAST_SECONDS: Final = 0.002
"""Times below it are mostly the cost of a call."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """What was found.

    Args:
        bounds: what the tokenizer proves of every text.
        whole: why long texts are counted whole; None where they are counted in slices.
        has_template: whether there is a chat template for the engine.
        ratios: processor time for a byte of each string of the largest size, as a multiple of prose.
        suspicions: all findings, warnings first.
    """

    bounds: Structure
    whole: str | None
    has_template: bool
    ratios: dict[str, float]
    suspicions: tuple[Suspicion, ...]

    @property
    def passed(self) -> bool:
        """Say whether there is no warning."""
        return all(suspicion.level != "warning" for suspicion in self.suspicions)


def selftest(files: TokenizerFiles, engine: EngineName, sizes_bytes: Sequence[int] = SIZES_BYTES) -> SelfTest:
    """Look at a tokenizer as this engine uses it, and try it in processes of its own; takes some seconds.

    Raises:
        TokenizerError: tokenizer.json cannot be used at all.
    """
    tokenizer = engine_tokenizer(files, engine)
    described = described_as_adapted(files, tokenizer)
    normalizer = tokenizer.normalizer
    found = list(backtracking(described))
    if (grown := expansion(None if normalizer is None else normalizer.normalize_str)) is not None:
        found.append(grown)
    found += _of_template(files, engine)
    measured = paces(tokenizer, sizes_bytes)
    found += of_paces(measured)
    whole = slices.refusal(described)
    if whole is not None:
        found.append(Suspicion("note", "whole", f"long texts are counted whole, in one step: {whole}"))
    return SelfTest(
        bounds=structure(described),
        whole=whole,
        has_template=files.chat_template(engine) is not None,
        ratios=ratios_to_prose(measured, max(sizes_bytes)),
        suspicions=tuple(sorted(found, key=_is_note)),
    )


def of_paces(measured: Sequence[Pace]) -> list[Suspicion]:
    """Return a warning for each string that took too long, grew too steeply or took too much memory."""
    found = []
    sizes = sorted({pace.size_bytes for pace in measured if pace.name == PROSE})
    for pace in measured:
        if pace.seconds is None:
            detail = f"{pace.size_bytes:,} bytes of {pace.name!r} were given up; what follows was not tried"
            found.append(Suspicion("warning", "slow", detail))
    for name, ratio in dear(measured, max(sizes)).items():
        found.append(Suspicion("warning", "slow", f"{name!r} takes {ratio:.1f} times as long as prose"))
    for name, steepening in _steepenings(measured).items():
        if steepening > MOST_STEEPENING:
            detail = f"a byte of {name!r} takes {steepening:.1f} times as long in the largest size as in the smallest"
            found.append(Suspicion("warning", "slow", detail))
    peak_bytes = max((pace.peak_bytes or 0 for pace in measured), default=0)
    if peak_bytes > MOST_BYTES:
        found.append(Suspicion("warning", "memory", f"counting took {peak_bytes // 2**20} MiB of memory"))
    return found


def ratios_to_prose(measured: Sequence[Pace], size_bytes: int) -> dict[str, float]:
    """Return the processor time for a byte of each string of about a size, as a multiple of that of prose beside it."""
    return {
        pace.name: round(ratio, 3)
        for pace in _of_size(measured, size_bytes)
        if pace.name != PROSE and (ratio := _beside_prose(pace)) is not None
    }


def dear(measured: Sequence[Pace], size_bytes: int) -> dict[str, float]:
    """Return those of the ratios that are beyond the bounds, for the string's bytes and for its tokens too."""
    tokens_of_byte = {
        pace.name: min((pace.tokens or 0) / pace.size_bytes, 1.0) for pace in _of_size(measured, size_bytes)
    }
    prose = tokens_of_byte.get(PROSE)
    return {
        name: ratio
        for name, ratio in ratios_to_prose(measured, size_bytes).items()
        if ratio > MOST_RATIO and not (prose and ratio <= MOST_TOKEN_RATIO * tokens_of_byte[name] / prose)
    }


def _of_size(measured: Sequence[Pace], size_bytes: int) -> list[Pace]:
    return [pace for pace in measured if size_bytes / 2 < pace.size_bytes <= size_bytes]


def _steepenings(measured: Sequence[Pace]) -> dict[str, float]:
    """Return how much longer a byte takes in the largest size than in the smallest, where both can be told.

    Each is taken beside its own prose, since between the two the machine may have become busy.
    """
    by_name: dict[str, list[Pace]] = {}
    for pace in sorted(measured, key=_size):
        by_name.setdefault(pace.name, []).append(pace)
    found = {}
    for name, own in by_name.items():
        small, large = _beside_prose(own[0]), _beside_prose(own[-1])
        if len(own) > 1 and small and large and (own[0].seconds or 0) > _LEAST_SECONDS:
            found[name] = large / small
    return found


def _of_template(files: TokenizerFiles, engine: EngineName) -> list[Suspicion]:
    try:
        try_template(files, engine)
    except TokenizerError as error:
        return [Suspicion("warning", "template", str(error))]
    return []


def _beside_prose(pace: Pace) -> float | None:
    return pace.seconds / pace.prose_seconds if pace.seconds is not None and pace.prose_seconds else None


def _size(pace: Pace) -> int:
    return pace.size_bytes


def _is_note(suspicion: Suspicion) -> bool:
    return suspicion.level == "note"
