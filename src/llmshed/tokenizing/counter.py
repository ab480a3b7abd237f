"""The exact counter: the engine's own template, tokenizer and special tokens, put together."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, assert_never

from tokenizers import Tokenizer

from llmshed.errors import PromptError
from llmshed.tokenizing.base import NO_DIGESTS, ChatRenderer, Digests, TokenBounds
from llmshed.tokenizing.blocks import BlockHasher
from llmshed.tokenizing.encode import TextCounter
from llmshed.tokenizing.images import ImagesApart, cut_at_images, image_parts
from llmshed.tokenizing.prompts import ChatPrompt, IdsPrompt, Prompt, PromptCount, TextPrompt
from llmshed.tokenizing.slices import SLICE_CHARACTERS, Slicer
from llmshed.tokenizing.structure import Structure

STEP_CHARACTERS: Final = 131_072
"""Characters that are counted before others may have the thread: some 0.1 s."""


class Token(NamedTuple):
    """One token of a prompt: its id and the piece of text that it stands for, or its name where there is none."""

    token_id: int
    piece: str


class Span(NamedTuple):
    """One token and the bytes of the prompt's UTF-8 that it stands for; both 0 for a token that the engine adds."""

    token_id: int
    text: str
    start: int
    stop: int


class ImageRule(NamedTuple):
    """How images are counted: `bound_tokens` each, cut out of the text at TGI's marks if `marks` is set."""

    bound_tokens: int
    marks: bool


class Cut(NamedTuple):
    """Truncation and padding that the tokenizer applies itself, in tokens; None where it does not."""

    truncate_tokens: int | None = None
    pad_tokens: int | None = None
    pad_multiple: int | None = None

    def apply(self, bounds: TokenBounds) -> TokenBounds:
        """Return the bounds on what is left after cutting and filling up."""
        low, high = bounds
        if self.truncate_tokens is not None:
            low = min(low, self.truncate_tokens)
            high = self.truncate_tokens if high is None else min(high, self.truncate_tokens)
        if self.pad_tokens is not None:
            low = max(low, self.pad_tokens)
            high = None if high is None else max(high, self.pad_tokens)
        if self.pad_multiple and high is not None:
            high = -(-high // self.pad_multiple) * self.pad_multiple
        return TokenBounds(low, high)


class ExactCounter:
    """Counts prompts as one engine does; thread safe, and so is everything it is made of.

    `build.build_counter` puts one together.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        texts: TextCounter,
        renderer: ChatRenderer | None,
        structure: Structure,
        *,
        blocks: BlockHasher,
        slicer: Slicer,
        images: ImageRule | None = None,
        digests: Digests = NO_DIGESTS,
    ) -> None:
        """Take the parts; without a renderer chats are refused, without an image rule prompts with images are."""
        self.digests = digests
        self._tokenizer = tokenizer
        self._texts = texts
        self._renderer = renderer
        self._structure = structure
        self._blocks = blocks
        self._images = images
        self._slicer = slicer
        self._special_tokens: int = tokenizer.num_special_tokens_to_add(is_pair=False)
        self._cut = _cut(tokenizer)

    def bounds(self, prompt: Prompt) -> TokenBounds:
        """Bound the count from the prompt's bytes alone; both bounds hold for every text.

        Of a chat nothing can be said before it is rendered, since a template may drop or repeat what it is given.
        `steps` bounds the rendered text before the dearer work.
        """
        match prompt:
            case IdsPrompt():
                return TokenBounds(len(prompt.ids), len(prompt.ids))
            case ChatPrompt() | TextPrompt() if self._images is not None:
                return TokenBounds(0, None)
            case ChatPrompt():
                return self._cut.apply(TokenBounds(0, None))
            case TextPrompt():
                return self._text_bounds(_utf8_length(prompt.text), special=prompt.add_special_tokens)
            case _:
                assert_never(prompt)

    def count(self, prompt: Prompt) -> PromptCount:
        """Count a prompt as the engine will.

        Raises:
            PromptError: the template refuses the prompt or there is none, it is no Unicode text, or it holds images
                and there is no bound for them.
        """
        return next(count for count in self.steps(prompt) if count is not None)

    def steps(self, prompt: Prompt, enough_tokens: int | None = None) -> Iterator[PromptCount | None]:
        """Count a prompt step by step, as `PromptCounter` says.

        Raises:
            PromptError: as `count`; also for a text with a stretch too long to be counted in one step.
        """
        if isinstance(prompt, IdsPrompt):
            yield PromptCount(len(prompt.ids), 0)
            return
        text = self.render(prompt)
        data = _utf8(text.text)
        tokens = self.bounds(text).low
        if enough_tokens is not None and tokens > enough_tokens:
            yield PromptCount(tokens, len(data), is_bound=True)
            return
        tokens, pieces = self._pieces(text)
        tokens += self._image_parts_tokens(prompt)
        unpaused = 0
        for piece, special in pieces:
            if enough_tokens is not None and tokens > enough_tokens:
                yield PromptCount(tokens, len(data), is_bound=True)
                return
            if unpaused > 0 and unpaused + len(piece) > STEP_CHARACTERS:
                yield None
                unpaused = 0
            tokens += self._texts.counts([piece], add_special_tokens=special)[0]
            unpaused += len(piece)
        yield PromptCount(tokens, len(data), self._blocks.names(data))

    def render(self, prompt: ChatPrompt | TextPrompt) -> TextPrompt:
        """Return the text that the engine tokenizes, with the engine's rule for special tokens: none around a chat.

        Raises:
            PromptError: as `count`.
        """
        if isinstance(prompt, TextPrompt):
            return prompt
        if self._renderer is None:
            raise PromptError("the model has no chat template, so the engine refuses chats; send plain text")
        if self._images is None and image_parts(prompt):
            raise PromptError("messages: images cannot be counted here without a bound for each (image_tokens)")
        return TextPrompt(self._renderer.render(prompt), add_special_tokens=False)

    def tokens(self, prompt: ChatPrompt | TextPrompt) -> list[Token]:
        """Return the tokens themselves, which is slower than counting them.

        Raises:
            PromptError: as `count`; also a prompt with images, whose tokens only the engine knows.
        """
        text = self.render(prompt)
        _utf8(text.text)
        if self._images is not None and (self._image_parts_tokens(prompt) or self._apart(text.text).images):
            raise PromptError("the tokens of an image are known to the engine alone; only their number is bounded here")
        (encoding,) = self._tokenizer.encode_batch([text.text], add_special_tokens=text.add_special_tokens)
        return [
            Token(token_id, text.text[begin:end] or name)
            for token_id, name, (begin, end) in zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True)
        ]

    def spans(self, text: TextPrompt) -> list[Span]:
        """Return the tokens of a rendered text with their places; slower than counting, and images are left out.

        Raises:
            PromptError: the text is not Unicode.
        """
        _utf8(text.text)
        (encoding,) = self._tokenizer.encode_batch([text.text], add_special_tokens=text.add_special_tokens)
        places = _Bytes(text.text)
        return [
            Span(token_id, text.text[begin:end], places.before(begin), places.before(end))
            for token_id, (begin, end) in zip(encoding.ids, encoding.offsets, strict=True)
        ]

    def _pieces(self, text: TextPrompt) -> tuple[int, Iterator[tuple[str, bool]]]:
        """Return the texts that are counted, each with whether BOS and EOS go around it, and the tokens beside them."""
        apart = self._apart(text.text)
        if apart.images == 0 and (not self._slicer.cuts or len(text.text) <= SLICE_CHARACTERS):
            return 0, iter([(self._slicer.uncut(text.text), text.add_special_tokens)])
        special = self._special_tokens if text.add_special_tokens else 0
        return special + apart.images * self._bound_tokens, self._slices(apart.texts)

    def _slices(self, texts: Sequence[str]) -> Iterator[tuple[str, bool]]:
        for text in filter(None, texts):
            for piece in self._slicer.slices(text):
                yield piece, False

    def _apart(self, text: str) -> ImagesApart:
        return cut_at_images(text) if self._images is not None and self._images.marks else ImagesApart([text], 0)

    def _image_parts_tokens(self, prompt: ChatPrompt | TextPrompt) -> int:
        """Return the bound of images that a renderer shows by placeholders of its own."""
        if self._images is None or self._images.marks or isinstance(prompt, TextPrompt):
            return 0
        return image_parts(prompt) * self._bound_tokens

    @property
    def _bound_tokens(self) -> int:
        return 0 if self._images is None else self._images.bound_tokens

    def _text_bounds(self, size_bytes: int, *, special: bool) -> TokenBounds:
        around = self._special_tokens if special else 0
        proof = self._structure
        low = 0 if proof.bytes_per_token is None else -(-size_bytes // proof.bytes_per_token)
        high = None
        if proof.tokens_per_byte is not None:
            high = around + size_bytes * proof.tokens_per_byte + proof.extra_tokens
        return self._cut.apply(TokenBounds(around + low, high))


def _cut(tokenizer: Tokenizer) -> Cut:
    truncation, padding = tokenizer.truncation, tokenizer.padding
    return Cut(
        None if truncation is None else truncation["max_length"],
        None if padding is None else padding["length"],
        None if padding is None else padding["pad_to_multiple_of"],
    )


class _Bytes:
    """Turns places in a text into places in its UTF-8, in one pass for places that rise."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ascii = text.isascii()
        self._characters = self._bytes = 0

    def before(self, characters: int) -> int:
        """Return how many bytes stand before a character."""
        if self._ascii or characters == 0:
            return characters
        if characters < self._characters:
            # A character that several tokens share is gone back over; it is at most a few long.
            return self._bytes - len(self._text[characters : self._characters].encode())
        self._bytes += len(self._text[self._characters : characters].encode())
        self._characters = characters
        return self._bytes


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise PromptError(f"the text is not Unicode: half of a surrogate pair at character {error.start}") from None


def _utf8_length(text: str) -> int:
    """Return the length in UTF-8; three bytes for a lone surrogate, which counting refuses."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
