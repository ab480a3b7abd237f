"""The tokenizer object as the engine holds it, which is not always what tokenizer.json says.

TGI starts by loading the tokenizer with the transformers library 4 and saving it again, and reads that copy with the
tokenizers library (router/src/server.rs, `py_resolve_tokenizer`). What that passage changes is done here:

- tokens that tokenizer_config.json declares and tokenizer.json lacks are added (both engines);
- classes that own their special tokens, as Llama's, replace the post-processor by BOS and EOS as `add_bos_token` and
  `add_eos_token` say (TGI; version 5 of the library no longer does so);
- truncation and padding stay as written in the file (TGI), while the transformers library switches them off for each
  call unless asked for.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tokenizers import AddedToken, Tokenizer
from tokenizers.processors import TemplateProcessing

from llmshed.errors import TokenizerError
from llmshed.tokenizing.files import EngineName, TokenizerFiles

# Tokenizer classes with a method update_post_processor in transformers 4.57, and their defaults of add_bos_token.
_OWN_SPECIAL_TOKENS: Mapping[str, bool] = {
    "CodeLlamaTokenizer": True,
    "CohereTokenizer": True,
    "GemmaTokenizer": True,
    "GPTNeoXTokenizer": False,
    "LlamaTokenizer": True,
}

TOKEN_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
"""What an added token says of itself beside its text, by the names of the files and of the library."""


def engine_tokenizer(files: TokenizerFiles, engine: EngineName) -> Tokenizer:
    """Build the tokenizer that this engine counts with.

    Raises:
        TokenizerError: the tokenizers library cannot use tokenizer.json.
    """
    try:
        tokenizer = Tokenizer.from_str(files.tokenizer_json)
    except Exception as error:  # noqa: BLE001 - the library raises bare Exception for every fault of the file
        reason = str(error).strip()[:200]
        raise TokenizerError(f"{files.name}: tokenizer.json cannot be used: {reason}") from None
    _add_declared_tokens(tokenizer, files.config)
    if engine == "tgi":
        _own_special_tokens(tokenizer, files)
    else:
        tokenizer.no_truncation()
        tokenizer.no_padding()
    return tokenizer


def _add_declared_tokens(tokenizer: Tokenizer, config: Mapping[str, Any]) -> None:
    """Add the tokens of `added_tokens_decoder` that tokenizer.json lacks, in the order of their ids."""
    known = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    for content, flags in _declared(config):
        if content and content not in known:
            token = AddedToken(content, **flags)
            if flags["special"]:
                tokenizer.add_special_tokens([token])
            else:
                tokenizer.add_tokens([token])


def _declared(config: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, bool]]]:
    declared = config.get("added_tokens_decoder")
    if not isinstance(declared, dict):
        return
    for _, entry in sorted(((int(key), value) for key, value in declared.items() if key.isdecimal()), key=_first):
        match entry:
            case {"content": str(content)}:
                yield content, {flag: entry.get(flag, False) is True for flag in TOKEN_FLAGS}
            case _:
                continue


def _first(pair: tuple[int, Any]) -> int:
    return pair[0]


def _own_special_tokens(tokenizer: Tokenizer, files: TokenizerFiles) -> None:
    """Put BOS and EOS around text as the tokenizer's class does when the transformers library 4 loads it.

    A tokenizer whose BOS or EOS is switched on but not named is left as it is: the engine would not start with it.
    """
    kind = str(files.config.get("tokenizer_class") or "").removesuffix("Fast")
    if kind not in _OWN_SPECIAL_TOKENS:
        return
    parts, used = ["$A:0"], []
    for name, key, default in (
        ("bos_token", "add_bos_token", _OWN_SPECIAL_TOKENS[kind]),
        ("eos_token", "add_eos_token", False),
    ):
        if files.config.get(key, default) is not True:
            continue
        token = files.special_tokens.get(name)
        token_id = None if token is None else tokenizer.token_to_id(token)
        if token is None or token_id is None:
            return
        parts = [f"{token}:0", *parts] if name == "bos_token" else [*parts, f"{token}:0"]
        used.append((token, token_id))
    tokenizer.post_processor = TemplateProcessing(single=parts, pair=[*parts, "$B:1"], special_tokens=used)
