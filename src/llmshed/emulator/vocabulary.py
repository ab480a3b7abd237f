"""The replica's tokenizer: what prompts count, and the pieces that made-up text is built from."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from tokenizers import Tokenizer

from llmshed.errors import PromptError
from llmshed.tokenizing.adapt import engine_tokenizer
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.files import TokenizerFiles
from llmshed.tokenizing.prompts import ChatPrompt, TextPrompt
from llmshed.tokenizing.renderers import TemplateOf, renderer

SCANNED_IDS = 30_000
"""Ids looked at for words; vocabularies have their common words in front."""
MOST_WORDS = 4_000

_WORD = re.compile(r" [a-z]{4,12}")
_PART = re.compile(r"[a-z]{1,12}")


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of output: its id and the text that it adds."""

    token_id: int
    text: str
    special: bool = False


class Vocabulary:
    """Counts, renders and lists tokens as TGI does with these files; thread safe."""

    def __init__(self, files: TokenizerFiles) -> None:
        """Load the tokenizer and look for words in it: some tenths of a second for a large one.

        Raises:
            TokenizerError: the files cannot be used.
        """
        self._counter = build_counter(files, "tgi")
        self._tokenizer = engine_tokenizer(files, "tgi")
        template = TemplateOf.found(files, "tgi")
        self._renderer = None if template is None else renderer(template)
        self.end = _end_piece(self._tokenizer, files)
        self.words, self.comma, self.full_stop = _find_words(self._tokenizer)

    @property
    def has_template(self) -> bool:
        """Say whether chats can be rendered at all."""
        return self._renderer is not None

    def count(self, text: str, *, add_special_tokens: bool) -> int:
        """Return the tokens of a text.

        Raises:
            PromptError: the text cannot be counted.
        """
        return self._counter.count(TextPrompt(text, add_special_tokens)).tokens

    def ids(self, text: str, *, add_special_tokens: bool) -> tuple[int, ...]:
        """Return the token ids of a text, as many as `count` says.

        Raises:
            PromptError: the text cannot be tokenized.
        """
        try:
            text.encode()
        except UnicodeEncodeError:
            raise PromptError("the text is not Unicode") from None
        (encoding,) = self._tokenizer.encode_batch_fast([text], add_special_tokens=add_special_tokens)
        return tuple(encoding.ids)

    def render(self, prompt: ChatPrompt) -> str:
        """Return the text of a chat; images are left in it as marks, as with any model that is not a vision model.

        Raises:
            PromptError: there is no template, or it refuses the messages.
        """
        if self._renderer is None:
            raise PromptError("template not found")
        return self._renderer.render(prompt)

    def tokens(self, text: str, *, add_special_tokens: bool) -> list[dict[str, Any]]:
        """Return every token as `/tokenize` tells it; `start` and `stop` are byte offsets.

        Raises:
            PromptError: the text cannot be tokenized.
        """
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise PromptError("the text is not Unicode") from None
        (encoding,) = self._tokenizer.encode_batch([text], add_special_tokens=add_special_tokens)
        places = _byte_places(text)
        spans = [(places[start], places[stop]) for start, stop in encoding.offsets]
        return [
            {"id": token_id, "text": data[start:stop].decode(errors="replace"), "start": start, "stop": stop}
            for token_id, (start, stop) in zip(encoding.ids, spans, strict=True)
        ]

    def prompt_pieces(self, text: str) -> list[Piece]:
        """Return each token of a prompt by itself, special ones with their names."""
        (encoding,) = self._tokenizer.encode_batch_fast([text], add_special_tokens=True)
        texts = self._tokenizer.decode_batch([[token_id] for token_id in encoding.ids], skip_special_tokens=False)
        return [Piece(token_id, piece) for token_id, piece in zip(encoding.ids, texts, strict=True)]

    def spell(self, text: str) -> list[Piece]:
        """Return the pieces that make up a given text, for output that must have a form."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        # A piece reaches to where the next one begins, so that nothing is lost between them.
        edges = [0, *(start for start, _ in encoding.offsets[1:]), len(text)]
        return [
            Piece(token_id, text[begin:end])
            for token_id, (begin, end) in zip(encoding.ids, pairwise(edges), strict=False)
        ]


def _byte_places(text: str) -> Sequence[int]:
    """Return where each character begins in UTF-8, and the length at last: the library counts characters, TGI bytes."""
    if text.isascii():
        return range(len(text) + 1)
    return [0, *accumulate(len(character.encode()) for character in text)]


def _end_piece(tokenizer: Tokenizer, files: TokenizerFiles) -> Piece:
    text = files.special_tokens.get("eos_token", "</s>")
    return Piece(tokenizer.token_to_id(text) or 0, text, special=True)


def _find_words(tokenizer: Tokenizer) -> tuple[Sequence[Piece], Piece, Piece]:
    """Find tokens that add a whole word after another, and the two marks that make sentences of them."""
    special = {token_id for token_id, token in tokenizer.get_added_tokens_decoder().items() if token.special}
    ids = [token_id for token_id in range(min(tokenizer.get_vocab_size(), SCANNED_IDS)) if token_id not in special]
    # A piece is what a token adds behind another one: decoders drop the space before a first word.
    anchor = tokenizer.encode("a", add_special_tokens=False).ids[-1:]
    before = len(tokenizer.decode(anchor))
    texts = [text[before:] for text in tokenizer.decode_batch([[*anchor, token_id] for token_id in ids])]
    pieces = [Piece(token_id, text) for token_id, text in zip(ids, texts, strict=True)]
    words = [piece for piece in pieces if _WORD.fullmatch(piece.text)][:MOST_WORDS]
    if len(words) < 50:
        words += [piece for piece in pieces if _PART.fullmatch(piece.text)][:MOST_WORDS]
    words = words or [Piece(0, "a")]
    marks = {piece.text: piece for piece in reversed(pieces) if piece.text in {",", "."}}
    return words, marks.get(",", words[0]), marks.get(".", words[0])
