"""Options that `llmshed calibrate` and `llmshed profile verify` share."""

import secrets
from pathlib import Path
from typing import Annotated, Literal

import typer

DEFAULT_MIX = "256/128*2,1024/256*2,2048/512"
"""Chats of several lengths; nobody's traffic in particular."""
MOST_SEEDS = 2**32

EngineOption = Annotated[
    Literal["tgi", "vllm", "llamacpp"] | None,
    typer.Option(show_default=False, help="Its engine; default: it is asked."),
]
TokenizerOption = Annotated[
    str | None,
    typer.Option(metavar="DIR|ID", show_default=False, help="Tokenizer of the model; default: the embedded one."),
]
KeyFileOption = Annotated[
    Path | None, typer.Option(metavar="FILE", show_default=False, help="File with the key to send.")
]
WorkloadOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", show_default=False, help="Trace or decision log that the mix is drawn from."),
]
CeilingOption = Annotated[
    Literal["asked", "pow2", "flat1024", "flat4096"] | None,
    typer.Option(show_default=False, help="Output ceilings of --workload; default: asked if it holds any."),
]
DeclareOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", show_default=False, help="Fact that the engine does not tell; may be repeated."),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        min=0, max=MOST_SEEDS, metavar="N", show_default=False, help="Of every draw; default: another each time."
    ),
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Send to a replica that others use, or that counts otherwise.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def drawn_seed(given: int | None) -> int:
    """Return the seed that was given, or another each time: prompts sent before are found in the engine's cache."""
    return secrets.randbelow(MOST_SEEDS) if given is None else given
