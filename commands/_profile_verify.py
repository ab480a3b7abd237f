"""`llmshed profile verify`: whether a profile's ceiling still is a replica's."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ._address import read_address
from ._calibrate_options import (
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

if TYPE_CHECKING:
    from llmshed.profile import Profile


def verify(
    replica: Annotated[str, typer.Argument(metavar="REPLICA", help="URL of the replica, which serves nobody else.")],
    *,
    profile: Annotated[
        str,
        typer.Option(metavar="FILE", show_default=False, help="Profile; `simulated`: the one that ships."),
    ],
    engine: EngineOption = None,
    tokenizer: TokenizerOption = None,
    key_file: KeyFileOption = None,
    mix: Annotated[
        str | None,
        typer.Option(
            metavar="MIX", show_default=False, help="Requests as calibrate takes them; default: those it was made with."
        ),
    ] = None,
    workload: WorkloadOption = None,
    ceiling: CeilingOption = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", "-c", metavar="FILE", show_default=False, help="Configuration with the engine's share of TTFT."
        ),
    ] = None,
    max_duration: Annotated[
        float, typer.Option(min=10, max=86_400, metavar="SECONDS", help="Time after which nothing more is sent.")
    ] = 240.0,
    declare: DeclareOption = None,
    seed: SeedOption = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """See whether a profile's gross ceiling holds on an idle replica, and breaks a tenth above it.

    Example: llmshed profile verify http://10.0.0.7:8080 --profile llama-8b.toml --tokenizer ./llama-8b
    """
    from llmshed.admission.settings import lane_policies

    from ._calibrate_mix import asked_mix
    from ._calibrate_target import Place
    from ._calibrate_wishes import Traffic, declared_facts, thresholds
    from ._input import read_text
    from ._profile_files import read
    from ._profile_verify_run import Asked, verified
    from ._profile_verify_told import tell

    measured = read(profile)
    drawn = drawn_seed(seed)
    lanes, (_, engine_share_ratio) = measured.lanes, thresholds(config)
    typed = _recorded_mix(measured) if mix is None and workload is None else mix
    words, shapes = asked_mix(typed, workload, ceiling, lane_policies(lanes.interactive, lanes.bulk), drawn)
    asked = Asked(
        place=Place(
            url=read_address("REPLICA", replica),
            engine=engine,
            tokenizer=tokenizer,
            key=None if key_file is None else read_text(str(key_file)).strip(),
            seed=drawn,
            force=force,
        ),
        file=profile,
        profile=measured,
        traffic=Traffic(words, shapes, lanes, engine_share_ratio, max_duration),
        declared=declared_facts(declare),
        quiet=quiet,
    )
    raise typer.Exit(tell(asked, verified(asked), as_json=as_json))


def _recorded_mix(profile: "Profile") -> str | None:
    """Return the mix that a profile was measured with; None where it records none.

    Raises:
        typer.BadParameter: it was drawn from a file, which has to be named.
    """
    from ._calibrate_mix import is_typed

    words = profile.fingerprint.workload
    if words is not None and not is_typed(words):
        raise typer.BadParameter(f"the profile was measured with {words!r}: name that by --workload, or a --mix")
    return words
