"""Puts a counter together from a tokenizer's files for one engine."""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

import orjson
from tokenizers import Tokenizer

from llmshed.errors import TokenizerError
from llmshed.tokenizing import segments, slices
from llmshed.tokenizing.adapt import TOKEN_FLAGS, engine_tokenizer
from llmshed.tokenizing.base import ChatRenderer, Digests
from llmshed.tokenizing.blocks import BlockHasher
from llmshed.tokenizing.counter import ExactCounter, ImageRule
from llmshed.tokenizing.encode import ReferenceCounter, TextCounter
from llmshed.tokenizing.files import EngineName, TokenizerFiles
from llmshed.tokenizing.probes import PROBE_TEXTS
from llmshed.tokenizing.renderers import TemplateOf, local_time, renderer
from llmshed.tokenizing.structure import structure

_log = logging.getLogger(__name__)


def build_counter(
    files: TokenizerFiles,
    engine: EngineName,
    *,
    cache_bytes: int = 0,
    fastokens: bool = False,
    on_fast_mismatch: Callable[[str], None] = _log.error,
    block_key: bytes = b"",
    image_tokens: int | None = None,
    now: Callable[[], datetime] = local_time,
) -> ExactCounter:
    """Build the counter that counts as `engine` does.

    Args:
        files: the tokenizer.
        engine: whose renderer and rules are followed.
        cache_bytes: size of the cache of segment counts; 0 for none. It is left out, with a line in the log, for
            tokenizers where splitting is not proved exact.
        fastokens: count with fastokens if it is installed and proves equal; else a line in the log says why not.
        on_fast_mismatch: is given one sentence, in any thread, when fastokens counts otherwise and is dropped.
        block_key: secret of 16 to 64 bytes that prompt blocks are hashed with; empty to hash none.
        image_tokens: upper bound of the tokens of one image; None to refuse chats with images.
        now: local time for templates that write the date.

    Raises:
        TokenizerError: tokenizer.json or the chat template cannot be used by this engine.
        ValueError: `block_key` has a wrong length.
    """
    tokenizer = engine_tokenizer(files, engine)
    described = described_as_adapted(files, tokenizer)
    texts: TextCounter = ReferenceCounter(tokenizer)
    if fastokens:
        texts = _with_fastokens(texts, tokenizer, files.name, on_fast_mismatch)
    if cache_bytes > 0:
        texts = _with_cache(texts, tokenizer, described, files.name, cache_bytes)
    return ExactCounter(
        tokenizer,
        texts,
        _renderer(files, engine, now),
        structure(described),
        blocks=BlockHasher(block_key),
        images=None if image_tokens is None else ImageRule(image_tokens, marks=engine == "tgi"),
        slicer=_slicer(tokenizer, described, files.name),
        digests=_digests(files, engine),
    )


def _digests(files: TokenizerFiles, engine: EngineName) -> Digests:
    template = files.chat_template(engine)
    return Digests(files.tokenizer_sha256, None if template is None else template.sha256)


def described_as_adapted(files: TokenizerFiles, tokenizer: Tokenizer) -> dict[str, Any]:
    """Describe the tokenizer as adapted: the file, but with the added tokens, truncation and padding now in force."""
    described: dict[str, Any] = orjson.loads(files.tokenizer_json)
    added = tokenizer.get_added_tokens_decoder().values()
    described["added_tokens"] = [
        {"content": token.content, **{flag: getattr(token, flag) for flag in TOKEN_FLAGS}} for token in added
    ]
    described["truncation"], described["padding"] = tokenizer.truncation, tokenizer.padding
    return described


def _renderer(files: TokenizerFiles, engine: EngineName, now: Callable[[], datetime]) -> ChatRenderer | None:
    template = TemplateOf.found(files, engine)
    if template is None:
        return None
    try:
        return renderer(template, now)
    except TokenizerError as error:
        raise TokenizerError(f"{files.name}: {template.source}: {error}") from None


def _slicer(tokenizer: Tokenizer, described: dict[str, Any], name: str) -> slices.Slicer:
    cutter = slices.slicer(described)
    if not cutter.cuts or slices.proved(cutter, ReferenceCounter(tokenizer), list(PROBE_TEXTS.values())):
        return cutter
    _log.warning("%s: long texts are counted whole: counts of their parts differ on probe texts", name)
    return cutter.without_cuts()


def _with_fastokens(
    reference: TextCounter, tokenizer: Tokenizer, name: str, on_mismatch: Callable[[str], None]
) -> TextCounter:
    from llmshed.tokenizing.fast import FastCounter  # noqa: PLC0415 - an optional backend

    try:
        fast = FastCounter(tokenizer.to_str(), reference, on_mismatch=on_mismatch)
    except TokenizerError as error:
        _log.warning("%s: %s; counting with the tokenizers library", name, error)
        return reference
    return fast if fast.check([*PROBE_TEXTS.values(), "\n".join(PROBE_TEXTS.values())]) else reference


def _with_cache(
    texts: TextCounter, tokenizer: Tokenizer, described: dict[str, Any], name: str, cache_bytes: int
) -> TextCounter:
    if (reason := segments.refusal(described)) is not None:
        _log.info("%s: no cache of segment counts: %s", name, reason)
        return texts
    special_tokens = tokenizer.num_special_tokens_to_add(is_pair=False)
    cached = segments.SegmentCounter(texts, described, special_tokens=special_tokens, most_bytes=cache_bytes)
    if not segments.proved(cached, texts, described, list(PROBE_TEXTS.values())):
        _log.warning("%s: no cache of segment counts: it differs from whole counts on probe texts", name)
        return texts
    return cached
