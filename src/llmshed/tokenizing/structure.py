"""What tokenizer.json proves about every text: how many bytes one token can stand for, how many tokens bytes become.

Proofs, for the two kinds of BPE that are recognised; of any other tokenizer nothing is claimed.

Byte-level BPE: after normalising, every byte is one symbol, and tokens are strings of symbols. So a text of b bytes has
at most b tokens and, with longest token L, at least b / L, as long as nothing on the way drops or adds bytes.
Metaspace BPE with byte fallback: every character is a symbol of the vocabulary or falls back to its bytes; a space
becomes the one symbol U+2581. So again at most b tokens, and tokens no longer than their own UTF-8 text.
NFC and NFD change the number of bytes. A text grows by no more than a factor of 3 (U+1D160, see the Unicode FAQ on
normalization) and shrinks by no more than 3.5 (U+1FBE U+0308 U+0301 becomes U+0390), and what becomes ASCII was ASCII
but for three characters. A test computes this over all of Unicode.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_GROWTH = 3
_SHRINKING = 3.5
# Bytes that one ASCII byte, by its symbol, may have been before NFC or NFD: U+212A becomes K, U+1FEF a grave accent and
# U+037E a semicolon; no other character becomes ASCII. U+0100 to U+0121 stand for the control characters and the space.
_ASCII_BEFORE = {**{chr(code): 1 for code in (*range(0x21, 0x7F), *range(0x100, 0x122))}, "K": 3, "`": 3, ";": 2}
_SPACE = "\u2581"
_DROPPING = "Removed"


@dataclass(frozen=True, slots=True)
class Structure:
    """Bounds on the tokens of text, special tokens aside.

    Args:
        bytes_per_token: most UTF-8 bytes of text that one token can stand for; None when nothing is proved.
        tokens_per_byte: most tokens that one byte of text can become; None when nothing is proved.
        extra_tokens: tokens that come on top whatever the length.
    """

    bytes_per_token: int | None
    tokens_per_byte: int | None
    extra_tokens: int = 0


UNPROVED = Structure(None, None)


def structure(described: Mapping[str, Any]) -> Structure:
    """Read the bounds off a parsed tokenizer.json."""
    model = described["model"]
    plain = model.get("type") == "BPE" and not any(
        model.get(key) for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix")
    )
    if not plain:
        return UNPROVED
    normalizers = list(steps(described.get("normalizer"), "normalizers"))
    pre_tokenizers = list(steps(described.get("pre_tokenizer"), "pretokenizers"))
    added = described.get("added_tokens") or []
    if model.get("byte_fallback"):
        return _metaspace(model["vocab"], normalizers, pre_tokenizers, added)
    return _byte_level(model, normalizers, pre_tokenizers, added)


def steps(entry: Any, inside: str) -> Iterator[Mapping[str, Any]]:
    """Yield the steps of a normalizer or pre-tokenizer in order, sequences taken apart; `inside` names their list."""
    if entry is None:
        return
    if entry.get("type") == "Sequence":
        for step in entry[inside]:
            yield from steps(step, inside)
    else:
        yield entry


def _byte_level(
    model: Mapping[str, Any],
    normalizers: Sequence[Mapping[str, Any]],
    pre_tokenizers: Sequence[Mapping[str, Any]],
    added: Sequence[Mapping[str, Any]],
) -> Structure:
    kinds = [step["type"] for step in pre_tokenizers]
    if kinds.count("ByteLevel") != 1 or kinds[-1] != "ByteLevel":
        return UNPROVED
    if any(step["type"] not in {"NFC", "NFD"} for step in normalizers):
        return UNPROVED
    # A space may be put before each piece; every piece has a byte at least, so this doubles at most.
    growth = 2 if pre_tokenizers[-1].get("add_prefix_space") else 1
    # The text of a normalised token is itself normalised before it is looked for, and so is what it matches.
    stretch = math.ceil((_GROWTH * _SHRINKING) ** len(normalizers))
    longest = _longest(_longest_before(model["vocab"], len(normalizers)), added, stretch)
    # A byte whose symbol the vocabulary lacks is dropped or fused with others, so many bytes may share one token.
    keeps_all = all(symbol in model["vocab"] for symbol in byte_symbols()) and not any(map(_drops, pre_tokenizers[:-1]))
    return Structure(longest if keeps_all else None, _GROWTH ** len(normalizers) * growth)


def _metaspace(
    vocabulary: Mapping[str, int],
    normalizers: Sequence[Mapping[str, Any]],
    pre_tokenizers: Sequence[Mapping[str, Any]],
    added: Sequence[Mapping[str, Any]],
) -> Structure:
    if _SPACE not in vocabulary or any(f"<0x{byte:02X}>" not in vocabulary for byte in range(256)):
        return UNPROVED
    growth, extra = 1, 0
    for step in (*normalizers, *pre_tokenizers):
        match step:
            case {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}:
                pass
            case {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first" | "never" as scheme}:
                extra += scheme == "first"
            case {"type": "Prepend", "prepend": "\u2581"} | {
                "type": "Metaspace",
                "replacement": "\u2581",
                "prepend_scheme": "always",
            }:
                growth *= 2
            case _:
                return UNPROVED
    longest = max(len(token.encode()) for token in vocabulary)
    return Structure(_longest(longest, added, 1), growth, extra)


def _longest_before(vocabulary: Mapping[str, int], normalizers: int) -> int:
    """Return the most bytes that one token stood for before `normalizers` steps of NFC or NFD."""
    if normalizers == 0:
        return max(map(len, vocabulary), default=1)
    longest = 1.0
    for token in sorted(vocabulary, key=len, reverse=True):
        if len(token) * _SHRINKING**normalizers <= longest:
            break
        longest = max(longest, sum(_ASCII_BEFORE.get(symbol, _SHRINKING) ** normalizers for symbol in token))
    return math.ceil(longest)


def _longest(longest: int, added: Sequence[Mapping[str, Any]], stretch: int) -> int | None:
    """Return the most bytes of text that a token stands for, an added one too; `stretch` is for normalised ones."""
    for token in added:
        if token.get("lstrip") or token.get("rstrip"):
            return None  # it takes in all the white space beside it, however long
        longest = max(longest, len(token["content"].encode()) * (stretch if token.get("normalized") else 1))
    return longest


def _drops(step: Mapping[str, Any]) -> bool:
    keeping = {"Split", "Punctuation", "Digits", "UnicodeScripts", "FixedLength"}
    return step["type"] not in keeping or step.get("behavior") == _DROPPING


def byte_symbols() -> str:
    """Return the 256 characters that byte-level BPE writes bytes as, in the order of the bytes.

    Printable bytes of Latin-1 stand for themselves, the others for U+0100 onwards (OpenAI's GPT-2 encoder).
    """
    own = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return "".join(chr(byte if byte in own else next(others)) for byte in range(256))
