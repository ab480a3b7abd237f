"""The files that a tokenizer is made of, read and checked once, whatever place they came from."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never

import orjson

from llmshed.errors import TokenizerError

EngineName = Literal["tgi", "vllm"]
"""Whose way of rendering and counting is followed; `vllm` is that of the transformers library."""

TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
SPECIAL_TOKENS = "special_tokens_map.json"
TEMPLATE_JSON = "chat_template.json"
TEMPLATE_JINJA = "chat_template.jinja"
PROCESSOR = "processor_config.json"

OPTIONAL = (CONFIG, SPECIAL_TOKENS, TEMPLATE_JSON, TEMPLATE_JINJA, PROCESSOR)
"""Files that may be absent; a tokenizer without a chat template counts plain text only."""

MOST_BYTES: Mapping[str, int] = {TOKENIZER: 256 * 2**20, **dict.fromkeys(OPTIONAL, 8 * 2**20)}
"""Largest size that is read, in bytes: the largest public tokenizer.json known has 34 MB."""

# Where each engine looks for the template, first match wins. TGI: router/src/server.rs and infer/mod.rs, which never
# name chat_template.jinja. The transformers library: tokenization_utils_base.py.
_TEMPLATE_ORDER: Mapping[EngineName, tuple[str, ...]] = {
    "tgi": (TEMPLATE_JSON, CONFIG, PROCESSOR, TEMPLATE_JINJA),
    "vllm": (TEMPLATE_JINJA, TEMPLATE_JSON, CONFIG, PROCESSOR),
}

_SPECIAL_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """One chat template.

    Args:
        text: template source.
        source: name of the file that it stood in.
        tool_use: template that the transformers library takes instead when tools are offered; None for the same.
    """

    text: str
    source: str
    tool_use: str | None = None

    @property
    def sha256(self) -> str:
        """Return the hash of the template's UTF-8 text, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class TokenizerFiles:
    """A tokenizer as its files describe it.

    Args:
        name: directory, hub id, or `embedded`.
        source: what kind of place `name` is.
        tokenizer_json: text of tokenizer.json.
        tokenizer_sha256: hash of the bytes of tokenizer.json, in hex.
        config: tokenizer_config.json; empty when absent.
        special_tokens: texts by names as `bos_token`; special_tokens_map.json fills in what the config lacks.
        templates: chat templates by the name of the file that holds them.
    """

    name: str
    source: Literal["directory", "hub", "embedded"]
    tokenizer_json: str
    tokenizer_sha256: str
    config: Mapping[str, Any] = field(default_factory=dict)
    special_tokens: Mapping[str, str] = field(default_factory=dict)
    templates: Mapping[str, ChatTemplate] = field(default_factory=dict)

    def chat_template(self, engine: EngineName) -> ChatTemplate | None:
        """Return the template that this engine renders chats with; None when no file holds one."""
        found = (self.templates[file] for file in _TEMPLATE_ORDER[engine] if file in self.templates)
        return next(found, None)

    def template_tokens(self, engine: EngineName) -> Mapping[str, str]:
        """Return the special tokens that this engine hands to the template, by name; TGI knows only the config's."""
        if engine == "vllm":
            return self.special_tokens
        return {key: text for key, text in self.special_tokens.items() if self.config.get(key) is not None}

    def notes(self, engine: EngineName) -> tuple[str, ...]:
        """Return sentences for the operator on where these files and this engine do not fit each other."""
        template = self.chat_template(engine)
        match engine:
            case "tgi" if template is not None and template.source == TEMPLATE_JINJA:
                note = (
                    f"{self.name}: the only chat template is {TEMPLATE_JINJA}, which TGI does not read: it would "
                    f"refuse chats unless started with the template in {CONFIG} (--tokenizer-config-path)"
                )
                return (note,)
            case "tgi" | "vllm":
                return ()
            case _:
                assert_never(engine)


def read_files(
    name: str, source: Literal["directory", "hub", "embedded"], contents: Mapping[str, bytes]
) -> TokenizerFiles:
    """Check the contents of a tokenizer's files, given by file name, and put them together.

    Of tokenizer.json only the encoding is looked at here; `adapt.engine_tokenizer` reads it.

    Raises:
        TokenizerError: a file is damaged or has another form; the text names it.
    """
    config = _object(name, CONFIG, contents[CONFIG]) if CONFIG in contents else {}
    special = _object(name, SPECIAL_TOKENS, contents[SPECIAL_TOKENS]) if SPECIAL_TOKENS in contents else {}
    return TokenizerFiles(
        name=name,
        source=source,
        tokenizer_json=_text(name, TOKENIZER, contents[TOKENIZER]),
        tokenizer_sha256=hashlib.sha256(contents[TOKENIZER]).hexdigest(),
        config=config,
        special_tokens=_special_tokens(name, config, special),
        templates=_templates(name, config, contents),
    )


def _text(name: str, file: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise TokenizerError(f"{name}: {file} is not UTF-8 text (byte {error.start})") from None


def _object(name: str, file: str, content: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise TokenizerError(f"{name}: {file} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise TokenizerError(f"{name}: {file} holds no JSON object")
    return value


def _special_tokens(name: str, config: Mapping[str, Any], special: Mapping[str, Any]) -> dict[str, str]:
    """Read tokens written as text or as `{"content": text}`; the config wins, as it does in both engines."""
    found = {}
    for key in _SPECIAL_NAMES:
        value = config.get(key) if key in config else special.get(key)
        match value:
            case None:
                continue
            case str():
                found[key] = value
            case {"content": str(content)}:
                found[key] = content
            case _:
                raise TokenizerError(f"{name}: {key} in {CONFIG} is neither a text nor an object with `content`")
    return found


def _templates(name: str, config: Mapping[str, Any], contents: Mapping[str, bytes]) -> dict[str, ChatTemplate]:
    found = {}
    if TEMPLATE_JINJA in contents:
        # Read as the transformers library reads it: as text, where every kind of line end is one newline.
        text = _text(name, TEMPLATE_JINJA, contents[TEMPLATE_JINJA]).replace("\r\n", "\n").replace("\r", "\n")
        found[TEMPLATE_JINJA] = ChatTemplate(text, TEMPLATE_JINJA)
    holders: dict[str, Mapping[str, Any]] = {CONFIG: config}
    holders |= {file: _object(name, file, contents[file]) for file in (TEMPLATE_JSON, PROCESSOR) if file in contents}
    for file, holder in holders.items():
        if (template := _template(name, file, holder.get("chat_template"))) is not None:
            found[file] = template
    if TEMPLATE_JSON in holders and TEMPLATE_JSON not in found:
        raise TokenizerError(f"{name}: {TEMPLATE_JSON} has no `chat_template`")
    return found


def _template(name: str, file: str, value: Any) -> ChatTemplate | None:
    """Read one text, or a list of `{"name", "template"}` of which `default` is meant for requests without tools."""
    match value:
        case None:
            return None
        case str():
            return ChatTemplate(value, file)
        case list():
            named = {}
            for entry in value:
                match entry:
                    case {"name": str(key), "template": str(text)}:
                        named[key] = text
                    case _:
                        raise TokenizerError(f"{name}: an entry of chat_template in {file} lacks `name` or `template`")
            return ChatTemplate(named["default"], file, named.get("tool_use")) if "default" in named else None
        case _:
            raise TokenizerError(f"{name}: chat_template in {file} is neither a text nor a list of named templates")
