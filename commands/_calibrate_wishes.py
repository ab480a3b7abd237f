"""What `llmshed calibrate` was asked for, and the plan that follows from it for one replica."""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import typer

from llmshed.calibration.plan import Objective, Plan, Shape
from llmshed.errors import ConfigError

from ._calibrate_target import Place
from ._whole_file import check_place

if TYPE_CHECKING:
    from llmshed.config.declared import DeclaredFacts
    from llmshed.engines.base import EngineInfo
    from llmshed.profile.sections import Lanes

_WHOLE = re.compile(r"-?[0-9]{1,15}")
FIRST_LEVEL_RATIO = 0.1
"""Part of the KV cache with which the first sweep begins: nothing that is tuned breaks there."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """Where results go.

    Args:
        profile: the profile, written when all is known.
        samples: a line for each request, written as they come.
        journal: every event, written as they come, by which a run is gone on with.
        report: a page with drawings.
    """

    JOURNAL: ClassVar = ".journal.jsonl"
    profile: Path
    samples: Path
    journal: Path
    report: Path

    @classmethod
    def beside(cls, profile: Path) -> "Outputs":
        """Name the other files after the profile."""
        return cls(profile, *(profile.with_suffix(suffix) for suffix in (".samples.csv", cls.JOURNAL, ".html")))

    def check(self) -> None:
        """See that they can be written, before minutes are spent on them.

        Raises:
            OutputError: one of them cannot.
        """
        check_place("--profile-out", self.profile)
        for path in (self.samples, self.journal, self.report):
            check_place(f"beside --profile-out {self.profile},", path)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is sent.

    Args:
        words: the mix in words, for the profile.
        mix: its requests.
        lanes: thresholds and objectives that it is held to.
        engine_share_ratio: part of a TTFT objective that is the engine's.
        max_duration_seconds: time for the whole run.
    """

    words: str
    mix: tuple[Shape, ...]
    lanes: "Lanes"
    engine_share_ratio: float
    max_duration_seconds: float

    def plan(self, info: "EngineInfo") -> Plan:
        """Return the plan for a replica.

        Raises:
            ConfigError: the replica takes no request as long as one of the mix.
        """
        longest = max(self.mix, key=lambda shape: shape.reserved_tokens)
        if info.max_total_tokens is not None and longest.reserved_tokens > info.max_total_tokens:
            sizes = f"{longest.input_tokens} + {longest.ceiling_tokens}"
            most = info.max_total_tokens
            raise ConfigError((f"the mix holds a request of {sizes} tokens, and the replica takes {most} together",))
        interactive, bulk = self.lanes.interactive, self.lanes.bulk
        kv_tokens = info.max_batch_total_tokens
        longest_input = info.max_input_tokens
        if longest_input is None and info.max_total_tokens is not None:
            longest_input = info.max_total_tokens - 1
        return Plan(
            mix=self.mix,
            objectives={
                "interactive": Objective(interactive.ttft_objective_seconds, interactive.tpot_objective_seconds),
                "bulk": Objective(bulk.ttft_objective_seconds, bulk.tpot_objective_seconds),
            },
            engine_share_ratio=self.engine_share_ratio,
            max_duration_seconds=self.max_duration_seconds,
            max_input_tokens=longest_input,
            first_level_tokens=None if kv_tokens is None else max(1, round(FIRST_LEVEL_RATIO * kv_tokens)),
        )


@dataclass(frozen=True, slots=True)
class Wishes:
    """Everything that was asked for.

    Args:
        place: the replica.
        outputs: where results go.
        traffic: what is sent; None for a run that goes on, whose journal says it.
        name: the profile's name.
        version: its version.
        declared: facts of the replica that its engine does not tell.
        dry_run: whether nothing is sent.
        quiet: whether no progress is shown.
    """

    place: Place
    outputs: Outputs
    traffic: Traffic | None
    name: str
    version: str
    declared: "DeclaredFacts"
    dry_run: bool
    quiet: bool


def thresholds(config: Path | None) -> "tuple[Lanes, float]":
    """Return thresholds and objectives of a configuration, or the defaults, and the engine's part of a TTFT objective.

    Raises:
        ConfigError: the file cannot be read, or holds mistakes.
    """
    from llmshed.config.lanes import BulkThresholds, InteractiveThresholds, LaneSettings
    from llmshed.profile.sections import Lanes

    settings = LaneSettings()
    if config is not None:
        from llmshed.gateway.config_file import read_config

        settings = read_config(config, os.environ, {}).config.lanes
    interactive, bulk = settings.interactive, settings.bulk
    lanes = {
        "interactive": {name: getattr(interactive, name) for name in InteractiveThresholds.model_fields},
        "bulk": {name: getattr(bulk, name) for name in BulkThresholds.model_fields},
    }
    return Lanes.model_validate(lanes), 1 - interactive.queue_share_ratio


def plan_as_object(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON has it."""
    return asdict(plan)


def plan_of(told: Mapping[str, Any]) -> Plan:
    """Return the plan that JSON tells.

    Raises:
        KeyError, TypeError, ValueError: it tells none.
    """
    mix = tuple(Shape(**shape) for shape in told["mix"])
    objectives = {lane: Objective(**objective) for lane, objective in told["objectives"].items()}
    return Plan(**{**told, "mix": mix, "objectives": objectives})


def declared_facts(texts: list[str] | None) -> "DeclaredFacts":
    """Read the values of `--declare`; the last one of a name wins.

    Raises:
        typer.BadParameter: a value without an equals sign, of no such field, or not one that the field takes.
    """
    from pydantic import ValidationError

    from llmshed.config.declared import DeclaredFacts

    facts: dict[str, str | int] = {}
    for text in texts or ():
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or name not in DeclaredFacts.model_fields:
            names = ", ".join(DeclaredFacts.model_fields)
            raise typer.BadParameter(f"--declare {text!r}: must be NAME=VALUE, where NAME is one of {names}")
        facts[name] = int(value) if name.endswith(("_tokens", "_count")) and _WHOLE.fullmatch(value) else value
    try:
        return DeclaredFacts.model_validate(facts)
    except ValidationError as error:
        first = error.errors()[0]
        raise typer.BadParameter(f"--declare {first['loc'][0]}: {first['msg']}") from None


def checked(option: str, text: str, kind: Any) -> str:
    """Return what stands in a profile under an annotated type, before minutes are spent on the rest of it.

    Raises:
        typer.BadParameter: it is none of that type; the text says what is accepted.
    """
    from pydantic import TypeAdapter, ValidationError

    from llmshed.config.base import ACCEPTED

    adapter: TypeAdapter[str] = TypeAdapter(kind)
    try:
        return adapter.validate_python(text)
    except ValidationError:
        raise typer.BadParameter(f"{option} {text!r}: must be {adapter.json_schema()[ACCEPTED]}") from None
