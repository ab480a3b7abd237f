"""`llmshed calibrate`: what one replica carries, measured, as a profile."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ._address import read_address
from ._calibrate_options import (
    DEFAULT_MIX,
    CeilingOption,
    DeclareOption,
    EngineOption,
    ForceOption,
    KeyFileOption,
    QuietOption,
    SeedOption,
    TokenizerOption,
    WorkloadOption,
    drawn_seed,
)
from ._options import JsonOption

DEFAULT_SECONDS = 900.0

if TYPE_CHECKING:
    from ._calibrate_wishes import Outputs, Traffic


def calibrate(
    replica: Annotated[str, typer.Argument(metavar="REPLICA", help="URL of the replica, which serves nobody else.")],
    *,
    profile_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Profile to write; samples, journal and page go beside."),
    ] = None,
    engine: EngineOption = None,
    tokenizer: TokenizerOption = None,
    key_file: KeyFileOption = None,
    mix: Annotated[
        str | None,
        typer.Option(
            metavar="MIX",
            show_default=False,
            help=f"Requests as INPUT/CEILING, each *TIMES if wished; default: {DEFAULT_MIX}.",
        ),
    ] = None,
    workload: WorkloadOption = None,
    ceiling: CeilingOption = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", metavar="FILE", show_default=False, help="Configuration whose objectives are to hold."
        ),
    ] = None,
    max_duration: Annotated[
        float | None,
        typer.Option(
            min=10,
            max=86_400,
            metavar="SECONDS",
            show_default=False,
            help=f"Time after which nothing more is sent; default: {DEFAULT_SECONDS:g}.",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Go on with the run whose journal this is."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", show_default=False, help="The profile's name; default: the file's.")
    ] = None,
    version: Annotated[str, typer.Option(metavar="VERSION", help="The profile's version.")] = "1",
    declare: DeclareOption = None,
    seed: SeedOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look at the replica and tell the plan; send no request.")
    ] = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Measure what one idle replica carries within its objectives, and write it as a profile.

    Requests are held in flight at rising levels of reserved tokens until an objective breaks. Ctrl-C keeps what was
    measured, and --resume goes on with it.

    Example: llmshed calibrate http://10.0.0.7:8080 --profile-out llama-8b.toml --tokenizer ./llama-8b --mix 512/128
    """
    from llmshed.config.base import Name
    from llmshed.profile.model import Version

    from ._calibrate_run import calibrated
    from ._calibrate_target import Place
    from ._calibrate_told import tell
    from ._calibrate_wishes import Wishes, checked, declared_facts
    from ._input import read_text

    outputs = _outputs(profile_out, resume)
    if resume is not None and any(given is not None for given in (mix, workload, ceiling, config, max_duration, seed)):
        raise typer.BadParameter("--resume: the journal says what is sent; --mix and the like are for a new run")
    drawn = drawn_seed(seed)
    seconds = max_duration or DEFAULT_SECONDS
    wishes = Wishes(
        place=Place(
            url=read_address("REPLICA", replica),
            engine=engine,
            tokenizer=tokenizer,
            key=None if key_file is None else read_text(str(key_file)).strip(),
            seed=drawn,
            force=force,
        ),
        outputs=outputs,
        traffic=_traffic(mix, workload, ceiling, config, seconds, drawn) if resume is None else None,
        name=checked("--name", outputs.profile.stem if name is None else name, Name),
        version=checked("--version", version, Version),
        declared=declared_facts(declare),
        dry_run=dry_run,
        quiet=quiet,
    )
    raise typer.Exit(tell(wishes, calibrated(wishes), as_json=as_json))


def _outputs(profile_out: Path | None, resume: Path | None) -> "Outputs":
    from dataclasses import replace

    from ._calibrate_wishes import Outputs

    if resume is None:
        if profile_out is None:
            raise typer.BadParameter("--profile-out: the name of the profile to write is needed")
        outputs = Outputs.beside(profile_out)
    else:
        stem = resume.with_name(resume.name.removesuffix(Outputs.JOURNAL))
        outputs = replace(Outputs.beside(profile_out or stem.with_name(f"{stem.name}.toml")), journal=resume)
    outputs.check()
    return outputs


def _traffic(
    mix: str | None, workload: Path | None, ceiling: str | None, config: Path | None, seconds: float, seed: int
) -> "Traffic":
    from llmshed.admission.settings import lane_policies

    from ._calibrate_mix import asked_mix
    from ._calibrate_wishes import Traffic, thresholds

    lanes, engine_share_ratio = thresholds(config)
    words, shapes = asked_mix(mix, workload, ceiling, lane_policies(lanes.interactive, lanes.bulk), seed)
    return Traffic(words, shapes, lanes, engine_share_ratio, seconds)
