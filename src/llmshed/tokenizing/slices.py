r"""Cuts long texts where the counts of the parts add up to the count of the whole, so that counting can stop midway.

The count of a megabyte takes a thread a second, and of a text made for it several. In slices it can make way for others
between two of them, and it ends as soon as the sum says all that matters: a prompt of 200,000 tokens for a model that
takes 4,096 is not counted to its end.

A cut is made between a character that is no white space and a space, and for patterns that take line ends apart, also
between a line end and a letter or digit. Why the parts add up:

- Splitting. No alternative of a known pattern matches a character that is no white space followed by a space, so a
  piece ends at the cut however the text before it was matched. Nothing looks behind, so what follows is split as if the
  text began there; and every repetition that reaches the cut would stop there anyway, since its class ends there. The
  one look ahead, `(?!\S)`, stands behind white space. With line ends, `\s*[\r\n]+` takes all white space up to the
  cut before `\s+(?!\S)` is tried.
- Normalising. A space and a line end neither compose with their neighbours nor decompose, in all four forms of Unicode.
- Metaspace without splitting. Merges only ever make tokens of the vocabulary, and none of them holds a character
  followed by the sign that a space becomes; so none reaches over the cut.
- Added tokens hold neither spaces nor line ends and take in no white space beside them, so none lies across a cut.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

from llmshed.errors import PromptError
from llmshed.tokenizing.encode import TextCounter
from llmshed.tokenizing.structure import UNPROVED, steps, structure

SLICE_CHARACTERS: Final = 32_768
"""Characters after which the next cut is taken: some 20 ms of counting, besides which the cost of a slice vanishes."""
MOST_UNCUT_BYTES: Final = 524_288
"""Longest stretch without a place for a cut: about a second of a thread, and 220 MB where memory is worst.

No text that somebody wrote has one half as long; but where texts are not cut at all, it is the longest text."""
MOST_EXPANDED_BYTES: Final = 131_072
"""The same where a normaliser may make 18 characters of one, as NFKC does of U+FDFA, an Arabic phrase."""
_EXPANDING: Final = frozenset({"NFKC", "NFKD", "Precompiled"})
_WINDOW_CHARACTERS: Final = 16_384
"""Searched for a cut in one go, since the search holds the interpreter."""

_SPACE: Final = "\u2581"
_BEFORE: Final = "!-~\u3041-\u3096\u30a1-\u30fa\u3400-\u9fff\uac00-\ud7a3"
_AFTER_LINE: Final = "0-9A-Za-z\u3041-\u3096\u30a1-\u30fa\u3400-\u9fff\uac00-\ud7a3"
_AT_SPACES: Final = re.compile(f"[{_BEFORE}](?= )")
_AT_SPACES_AND_LINES: Final = re.compile(f"[{_BEFORE}](?= )|\n(?=[{_AFTER_LINE}])")

_SUFFIXES: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_LINE_ENDS: Final = r"\s*[\r\n]+"
_WHITE: Final = r"\s+"
_BEFORE_WHITE: Final = r"\s+(?!\S)"
_KNOWN_ALTERNATIVES: Final = frozenset(
    {
        # GPT-2
        *("'s", "'t", "'re", "'ve", "'m", "'ll", "'d"),
        *(r" ?\p{L}+", r" ?\p{N}+", r" ?[^\s\p{L}\p{N}]+", _BEFORE_WHITE, _WHITE),
        # cl100k, which Qwen and Llama 3 follow
        *(_SUFFIXES, r"[^\r\n\p{L}\p{N}]?\p{L}+", r" ?[^\s\p{L}\p{N}]+[\r\n]*", _LINE_ENDS),
        *(r"\p{N}", r"\p{N}{1,2}", r"\p{N}{1,3}"),
        # o200k and Tekken
        *(rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{more}" for more in ("", f"{_SUFFIXES}?")),
        *(rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{more}" for more in ("", f"{_SUFFIXES}?")),
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        # DeepSeek
        *("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"),
        *(r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+""", r" ?[\p{P}\p{S}]+[\r\n]*"),
    }
)
"""Alternatives of the patterns of public tokenizers, none of which matches over a cut."""


class _Stage(NamedTuple):
    """One step of splitting: whether it takes every space, and whether line ends end its pieces."""

    takes_spaces: bool = False
    takes_lines: bool = True


class Slicer:
    """Cuts texts of one tokenizer, or only bounds them where cutting is not proved; `slicer` makes it."""

    def __init__(self, cut: re.Pattern[str] | None, most_uncut_bytes: int) -> None:
        """Take the expression whose matches end at cuts, None for no cuts, and the longest stretch without one."""
        self._cut = cut
        self._most_uncut_bytes = most_uncut_bytes

    @property
    def cuts(self) -> bool:
        """Say whether texts are cut at all."""
        return self._cut is not None

    def without_cuts(self) -> Self:
        """Return what only bounds texts."""
        return type(self)(None, self._most_uncut_bytes)

    def slices(self, text: str, characters: int = SLICE_CHARACTERS) -> Iterator[str]:
        """Yield the parts of a text in order, each of so many characters or as few more as the next cut allows.

        Raises:
            PromptError: a stretch without a cut is longer than can be counted in one go.
        """
        begin = 0
        while (end := self._next_cut(text, begin + characters - 1)) is not None:
            yield self.uncut(text[begin:end])
            begin = end
        yield self.uncut(text[begin:])

    def _next_cut(self, text: str, at: int) -> int | None:
        if self._cut is None:
            return None
        for start in range(at, len(text), _WINDOW_CHARACTERS):
            # The last character of a window is looked at by the next one too: what follows it decides.
            found = self._cut.search(text, start, start + _WINDOW_CHARACTERS + 1)
            if found is not None:
                return found.end()
        return None

    def uncut(self, part: str) -> str:
        """Return a text that is counted in one go.

        Raises:
            PromptError: it is too long for that.
        """
        size_bytes = len(part) if part.isascii() else len(part.encode())
        if size_bytes > self._most_uncut_bytes:
            raise PromptError(
                f"the prompt holds {size_bytes:,} bytes in one piece, without a space or line end between words;"
                f" at most {self._most_uncut_bytes:,} are counted"
            )
        return part


def slicer(described: Mapping[str, Any]) -> Slicer:
    """Return what cuts the texts of a tokenizer.json, as it was adapted; without cuts where `refusal` says why."""
    forms = {step["type"] for step in steps(described.get("normalizer"), "normalizers")}
    most = MOST_EXPANDED_BYTES if forms & _EXPANDING else MOST_UNCUT_BYTES
    if refusal(described) is not None:
        return Slicer(None, most)
    stages = _stages(described)
    in_lines = any(stage.takes_spaces and stage.takes_lines for stage in stages) and all(s.takes_lines for s in stages)
    return Slicer(_AT_SPACES_AND_LINES if in_lines else _AT_SPACES, most)


def refusal(described: Mapping[str, Any]) -> str | None:
    """Say why texts of this tokenizer.json may not be cut; None when they may."""
    model = described["model"]
    if model.get("type") != "BPE":
        return f"the model {model.get('type')} is not known to work on each part alone"
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name):
            return f"the model has {name}"
    for setting in ("truncation", "padding"):
        if described.get(setting) is not None:
            return f"{setting} is switched on"
    for token in described.get("added_tokens") or []:
        if re.search(r"\s", token["content"]) or any(token.get(flag) for flag in ("lstrip", "rstrip", "single_word")):
            return f"the added token {token['content']!r} holds or takes in white space"
    pre_tokenizers = list(steps(described.get("pre_tokenizer"), "pretokenizers"))
    if [step["type"] for step in pre_tokenizers] == ["Metaspace"]:
        return _metaspace_refusal(described)
    return _splitting_refusal(described, pre_tokenizers)


def proved(cutter: Slicer, whole: TextCounter, texts: Sequence[str]) -> bool:
    """Compare on probe texts, cut at every place where they may be: a look at the proof, and never its substitute."""
    for text in texts:
        parts = list(cutter.slices(text, characters=1))
        if sum(whole.counts(parts, add_special_tokens=False)) != whole.counts([text], add_special_tokens=False)[0]:
            return False
    return True


def _splitting_refusal(described: Mapping[str, Any], pre_tokenizers: Iterable[Mapping[str, Any]]) -> str | None:
    for step in steps(described.get("normalizer"), "normalizers"):
        if step["type"] not in {"NFC", "NFD", "NFKC", "NFKD"}:
            return f"the normalizer {step['type']} is not known to work on each part alone"
    for step in pre_tokenizers:
        match step:
            case {"type": "ByteLevel"} if not step.get("add_prefix_space"):
                continue
            case {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": "Isolated"} if not step.get(
                "invert"
            ):
                unknown = [part for part in alternatives(pattern) if part not in _KNOWN_ALTERNATIVES]
                if unknown:
                    return f"the pattern {unknown[0][:60]!r} is not known to stop at a space"
            case {"type": "Digits" | "Punctuation"} if step.get("behavior", "Isolated") == "Isolated":
                continue
            case _:
                return f"the pre-tokenizer {step['type']} is not known to work on each part alone"
    if not any(stage.takes_spaces for stage in _stages(described)):
        return "no pattern splits the text at its spaces"
    return None


def _metaspace_refusal(described: Mapping[str, Any]) -> str | None:
    if structure(described) is UNPROVED or described["model"].get("ignore_merges"):
        return "the model is not known to fall back to bytes and to merge by its table alone"
    if any(step["type"] != "Replace" for step in steps(described.get("normalizer"), "normalizers")):
        return "the normalizer writes something before each text"
    across = next((token for token in described["model"]["vocab"] if re.search(f"[^{_SPACE}]{_SPACE}", token)), None)
    return None if across is None else f"the token {across!r} reaches over the space behind a word"


def _stages(described: Mapping[str, Any]) -> list[_Stage]:
    """Return what each step of splitting does; `refusal` has seen that it is a known one."""
    found = []
    for step in steps(described.get("pre_tokenizer"), "pretokenizers"):
        match step:
            case {"type": "Split", "pattern": {"Regex": str(pattern)}}:
                parts = alternatives(pattern)
                found.append(_Stage(_WHITE in parts, _takes_lines(parts)))
            case {"type": "ByteLevel"} if step.get("use_regex", True):
                found.append(_Stage(takes_spaces=True, takes_lines=False))  # GPT-2's pattern, which parts line ends
            case {"type": "Metaspace"}:
                found.append(_Stage(takes_spaces=True, takes_lines=False))
            case _:
                found.append(_Stage())
    return found


def _takes_lines(parts: Sequence[str]) -> bool:
    """Say whether white space is first looked through for line ends, and taken up to the last of them."""
    white = [parts.index(part) for part in (_WHITE, _BEFORE_WHITE) if part in parts]
    return not white or (_LINE_ENDS in parts and parts.index(_LINE_ENDS) < min(white))


def alternatives(pattern: str) -> list[str]:
    """Return the alternatives of a regular expression at its top level, with line ends written as escapes."""
    parts, depth, in_class, start = [], 0, False, 0
    text = pattern.replace("\r", "\\r").replace("\n", "\\n")
    place = 0
    while place < len(text):
        sign = text[place]
        if sign == "\\":
            place += 1
        elif in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
        elif sign in "()":
            depth += 1 if sign == "(" else -1
        elif sign == "|" and depth == 0:
            parts.append(text[start:place])
            start = place + 1
        place += 1
    return [*parts, text[start:]]
