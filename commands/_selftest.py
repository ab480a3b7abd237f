"""`llmshed tokenize --selftest`: whether prompts can make a tokenizer slow or large."""

from typing import TYPE_CHECKING, NoReturn

import typer

from llmshed.errors import ExitCode

from ._output import print_json, print_table

if TYPE_CHECKING:
    from llmshed.tokenizing.files import EngineName, TokenizerFiles
    from llmshed.tokenizing.selftest import SelfTest

SCHEMA = "llmshed.tokenizer_selftest/1"


def test_and_exit(files: "TokenizerFiles", engine: "EngineName", *, as_json: bool) -> NoReturn:
    """Test a tokenizer, tell what was found, and end with 0 or, after a warning, 65."""
    from llmshed.tokenizing.selftest import selftest

    found = selftest(files, engine)
    if as_json:
        _print_json(files, engine, found)
    else:
        _print(files, engine, found)
    raise typer.Exit(ExitCode.OK if found.passed else ExitCode.BAD_DATA)


def _print_json(files: "TokenizerFiles", engine: str, found: "SelfTest") -> None:
    result = {
        "passed": found.passed,
        "tokenizer": files.name,
        "tokenizer_sha256": files.tokenizer_sha256,
        "engine": engine,
        "bytes_per_token": found.bounds.bytes_per_token,
        "tokens_per_byte": found.bounds.tokens_per_byte,
        "counted_in_slices": found.whole is None,
        "chat_template_tried": found.has_template,
        "ratios_to_prose": found.ratios,
        "findings": [suspicion._asdict() for suspicion in found.suspicions],
    }
    print_json(SCHEMA, result)


def _print(files: "TokenizerFiles", engine: str, found: "SelfTest") -> None:
    slowest = max(found.ratios, key=lambda name: found.ratios[name], default=None)
    print_table(
        {
            "tokenizer": f"{files.name} (sha256 {files.tokenizer_sha256[:12]})",
            "engine": engine,
            "longest token": _bound("{} bytes", found.bounds.bytes_per_token),
            "tokens of a byte": _bound("at most {}", found.bounds.tokens_per_byte),
            "long texts": "counted in slices" if found.whole is None else "counted whole",
            "slowest string": "none was tried"
            if slowest is None
            else f"{slowest!r}, {found.ratios[slowest]:.1f} x prose",
            "chat template": "tried" if found.has_template else "none",
        }
    )
    for suspicion in found.suspicions:
        typer.echo(f"{suspicion.level}: {suspicion.kind}: {suspicion.detail}")


def _bound(sentence: str, value: int | None) -> str:
    return "not proved" if value is None else sentence.format(value)
