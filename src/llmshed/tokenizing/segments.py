"""A cache of token counts by segment, for chats that repeat their earlier turns.

An added token cuts a text before anything else happens to it, so the count of a text is the number of added tokens
plus the counts of what lies between them, each counted alone. That holds only where no step looks beyond its own
segment: `refusal` names the rules, and `proved` tries them out. With a Metaspace pre-tokenizer, for one, the first
segment is written otherwise than the rest.
"""

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cachetools import LRUCache

from llmshed.tokenizing.encode import TextCounter
from llmshed.tokenizing.structure import steps

# What a cached entry takes beside its text: key, value, dict slot and the order that the cache keeps (64-bit CPython).
_ENTRY_BYTES = 400

# Texts beyond these are counted whole. The search for added tokens keeps the interpreter's lock (a few milliseconds a
# megabyte), and a text of hardly more than added tokens would cost more to cut than to count.
_MOST_CHARACTERS = 2**20
_MOST_SEGMENTS = 4096

_INDEPENDENT_NORMALIZERS = frozenset({"NFC", "NFD", "NFKC", "NFKD"})
_INDEPENDENT_PRE_TOKENIZERS = frozenset({"ByteLevel", "Digits", "Punctuation", "Split"})


class _Entry(NamedTuple):
    tokens: int
    size_bytes: int


def refusal(described: Mapping[str, Any]) -> str | None:
    """Say why the texts of this tokenizer.json may not be counted segment by segment; None when they may."""
    for setting in ("truncation", "padding"):
        if described.get(setting) is not None:
            return f"{setting} is switched on"
    if described["model"].get("dropout"):
        return "the model drops merges at random"
    for name, inside, known in (
        ("normalizer", "normalizers", _INDEPENDENT_NORMALIZERS),
        ("pre_tokenizer", "pretokenizers", _INDEPENDENT_PRE_TOKENIZERS),
    ):
        for step in steps(described.get(name), inside):
            if step["type"] not in known:
                return f"the {name} {step['type']} is not known to work on each segment alone"
    for token in described.get("added_tokens") or []:
        if token.get("lstrip") or token.get("rstrip") or token.get("single_word"):
            return f"the added token {token['content']!r} looks beyond itself"
    return None if _cutting_tokens(described) else "no added token cuts texts before they are normalised"


class SegmentCounter:
    """Counts texts by cached segments and hands new ones to another counter in one batch; thread safe."""

    def __init__(
        self, inner: TextCounter, described: Mapping[str, Any], *, special_tokens: int, most_bytes: int
    ) -> None:
        """Take the counter of segments, the parsed tokenizer.json, and the size of the cache in bytes.

        `special_tokens` is what the post-processor puts around a text that asks for it.
        """
        self._inner = inner
        self._special_tokens = special_tokens
        self._cut = re.compile(_alternatives(_cutting_tokens(described)))
        self._cache: LRUCache[str, _Entry] = LRUCache(most_bytes, getsizeof=_size)
        self._lock = threading.Lock()

    def counts(self, texts: Sequence[str], *, add_special_tokens: bool) -> list[int]:
        """Return the number of tokens of each text."""
        return [self._count(text, add_special_tokens=add_special_tokens) for text in texts]

    def _count(self, text: str, *, add_special_tokens: bool) -> int:
        segments = self._segments(text)
        if segments is None:
            return self._inner.counts([text], add_special_tokens=add_special_tokens)[0]
        with self._lock:
            known = {segment: entry.tokens for segment in segments if (entry := self._cache.get(segment)) is not None}
        missing = [segment for segment in dict.fromkeys(segments) if segment not in known]
        if missing:
            known |= zip(missing, self._inner.counts(missing, add_special_tokens=False), strict=True)
            self._remember((segment, known[segment]) for segment in missing)
        cuts = len(segments) - 1
        special = self._special_tokens if add_special_tokens else 0
        return cuts + sum(known[segment] for segment in segments) + special

    def _segments(self, text: str) -> list[str] | None:
        """Cut a text at its added tokens; None when it is too long or falls into too many pieces."""
        if len(text) > _MOST_CHARACTERS:
            return None
        segments, begin = [], 0
        for match in self._cut.finditer(text):
            segments.append(text[begin : match.start()])
            begin = match.end()
            if len(segments) > _MOST_SEGMENTS:
                return None
        segments.append(text[begin:])
        return segments

    def _remember(self, counted: Iterable[tuple[str, int]]) -> None:
        with self._lock:
            for segment, tokens in counted:
                entry = _Entry(tokens, len(segment.encode()) + _ENTRY_BYTES)
                if entry.size_bytes <= self._cache.maxsize:
                    self._cache[segment] = entry


def proved(segmented: TextCounter, whole: TextCounter, described: Mapping[str, Any], texts: Sequence[str]) -> bool:
    """Compare both counters on probe texts and on what added tokens make of them: between, doubled, at either end."""
    tokens = [token["content"] for token in described.get("added_tokens") or []]
    tried = list(texts)
    for place, text in enumerate(texts):
        token = tokens[place % len(tokens)] if tokens else ""
        other = tokens[(place * 7 + 3) % len(tokens)] if tokens else ""
        tried += [f"{token}{text}", f"{text}{token}", f"{text}{token}{text}{other}{other} {text}", f" {token} {text}\n"]
    return segmented.counts(tried, add_special_tokens=True) == whole.counts(tried, add_special_tokens=True)


def _size(entry: _Entry) -> int:
    return entry.size_bytes


def _cutting_tokens(described: Mapping[str, Any]) -> list[str]:
    """List the added tokens that are looked for in the raw text; normalised ones are found later, inside segments."""
    added = described.get("added_tokens") or []
    return [token["content"] for token in added if token["content"] and not token.get("normalized")]


def _alternatives(tokens: Iterable[str]) -> str:
    """Write an expression for the leftmost and there the longest token, which is what the tokenizers library takes.

    Written as a trie, so that every character is looked at a bounded number of times: with hundreds of alternatives
    side by side a text of nothing but `<` would take seconds.
    """
    root: dict[str, Any] = {}
    for token in tokens:
        node = root
        for character in token:
            node = node.setdefault(character, {})
        node[""] = {}
    return _branches(root)


def _branches(node: dict[str, Any]) -> str:
    inner = [re.escape(character) + _branches(rest) for character, rest in node.items() if character]
    if not inner:
        return ""
    # Greedy `?` tries the longer token first.
    return f"(?:{'|'.join(inner)}){'?' if '' in node else ''}"
