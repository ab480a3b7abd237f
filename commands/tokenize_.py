"""`llmshed tokenize`: how many tokens an engine will count for a text or a chat."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from llmshed.errors import ExitCode, LlmshedError

from ._options import JsonOption
from ._output import print_json, print_note, print_table

if TYPE_CHECKING:
    from llmshed.tokenizing.counter import ExactCounter, Token
    from llmshed.tokenizing.files import TokenizerFiles
    from llmshed.tokenizing.prompts import ChatPrompt, PromptCount, TextPrompt

SCHEMA = "llmshed.tokenize/1"


class EngineWord(StrEnum):
    """Whose way of rendering and counting is followed."""

    TGI = "tgi"
    VLLM = "vllm"


class ChatFileError(LlmshedError):
    """The file of a chat holds no message list and no chat request."""

    exit_code = ExitCode.BAD_DATA


def tokenize(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="Text to count; - reads it from standard input.")
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE", help="Count the text of a file; - for stdin.")
    ] = None,
    chat: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Count a chat: JSON message list or whole chat request; - for stdin."),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(metavar="DIR|ID", show_default=False, help="Tokenizer directory or hub id; default: embedded."),
    ] = None,
    engine: Annotated[EngineWord, typer.Option(help="Count as this engine does.")] = EngineWord.TGI,
    no_special_tokens: Annotated[
        bool, typer.Option("--no-special-tokens", help="Count plain text without BOS and EOS.")
    ] = False,
    image_tokens: Annotated[
        int | None, typer.Option(min=0, metavar="N", show_default=False, help="Tokens to count for each image.")
    ] = None,
    selftest: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|ID", show_default=False, help="Test whether prompts can make this tokenizer slow or large."
        ),
    ] = None,
    ids: Annotated[bool, typer.Option("--ids", help="List the token ids.")] = False,
    pieces: Annotated[
        bool, typer.Option("--pieces", help="List the pieces of text that the tokens stand for.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Count the input tokens of a text or a chat exactly as an engine counts them; no engine is asked.

    Example: llmshed tokenize --chat request.json --tokenizer ./qwen3 --engine vllm
    """
    if sum(source is not None for source in (text, file, chat, selftest)) != 1:
        raise typer.BadParameter("give exactly one of TEXT, --file FILE, --chat FILE and --selftest DIR|ID")
    if selftest is not None:
        from ._selftest import test_and_exit

        test_and_exit(_files(selftest, engine), engine.value, as_json=as_json)
    prompt = _chat(chat) if chat is not None else _plain(text, file, special=not no_special_tokens)
    files = _files(tokenizer, engine)
    counter = _counter(files, engine, image_tokens)
    rendered = counter.render(prompt)
    count = counter.count(prompt)
    tokens = counter.tokens(prompt) if ids or pieces else []
    result = _result(files, engine, rendered, count, is_chat=chat is not None)
    _show(result, tokens, ids=ids, pieces=pieces, as_json=as_json)


def _plain(text: str | None, file: str | None, *, special: bool) -> "TextPrompt":
    from llmshed.tokenizing.prompts import TextPrompt

    from ._input import read_text

    source = "-" if text == "-" else file
    return TextPrompt(text or "" if source is None else read_text(source), add_special_tokens=special)


def _chat(file: str) -> "ChatPrompt":
    """Read a message list or a chat request, as strictly as the gateway reads its bodies.

    Raises:
        ChatFileError: the file is not JSON, or JSON that a gateway would refuse.
        PromptError: the messages or tools have no form that an engine takes.
    """
    import orjson

    from llmshed.engines.base import BodyError
    from llmshed.gateway.door.body import parse_body
    from llmshed.tokenizing.chat_request import chat_prompt

    from ._input import read_bytes, shown_name

    content = read_bytes(file)
    try:
        is_list = isinstance(orjson.loads(content), list)
        return chat_prompt(parse_body(b'{"messages":' + content + b"}" if is_list else content))
    except orjson.JSONDecodeError as error:
        raise ChatFileError(f"{shown_name(file)}: not JSON: {error}") from error
    except BodyError as error:
        raise ChatFileError(f"{shown_name(file)}: {error}") from error


def _files(tokenizer: str | None, engine: EngineWord) -> "TokenizerFiles":
    from llmshed.tokenizing.load import EMBEDDED, find

    if tokenizer is None:
        print_note("no --tokenizer: the embedded one is used, whose counts are those of no real model")
    files = find(EMBEDDED if tokenizer is None else tokenizer)
    for note in files.notes(engine.value):
        print_note(note)
    return files


def _counter(files: "TokenizerFiles", engine: EngineWord, image_tokens: int | None) -> "ExactCounter":
    from llmshed.tokenizing.build import build_counter

    return build_counter(files, engine.value, image_tokens=image_tokens)


def _result(
    files: "TokenizerFiles", engine: EngineWord, rendered: "TextPrompt", count: "PromptCount", *, is_chat: bool
) -> dict[str, Any]:
    template = files.chat_template(engine.value) if is_chat else None
    return {
        "input_tokens": count.tokens,
        "characters": len(rendered.text),
        "bytes": count.rendered_bytes,
        "special_tokens": rendered.add_special_tokens,
        "engine": engine.value,
        "tokenizer": files.name,
        "tokenizer_sha256": files.tokenizer_sha256,
        "chat_template": None if template is None else template.source,
        "chat_template_sha256": None if template is None else template.sha256,
    }


def _show(result: Mapping[str, Any], tokens: "list[Token]", *, ids: bool, pieces: bool, as_json: bool) -> None:
    if as_json:
        listed: dict[str, Any] = {"ids": [token.token_id for token in tokens]} if ids else {}
        listed |= {"pieces": [token.piece for token in tokens]} if pieces else {}
        print_json(SCHEMA, {**result, **listed})
        return
    print_table(
        {
            "input tokens": result["input_tokens"],
            "characters": result["characters"],
            "bytes": result["bytes"],
            "engine": result["engine"],
            "tokenizer": f"{result['tokenizer']} (sha256 {result['tokenizer_sha256'][:12]})",
        }
    )
    for token in tokens:
        typer.echo("  ".join([str(token.token_id)] * ids + [repr(token.piece)] * pieces))
