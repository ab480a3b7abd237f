"""Settings of the pools: which replicas serve which model and lanes, and what is known of them."""

from typing import Annotated, Literal

from pydantic import Field

from llmshed.config.addresses import ReplicaUrl
from llmshed.config.base import ACCEPTED, FilePath, ModelName, Name, Ratio, Seconds, Settings, Tokens
from llmshed.config.declared import DeclaredFacts
from llmshed.config.ladders import LadderPlace

Lanes = Annotated[tuple[Literal["interactive", "bulk"], ...], Field(min_length=1)]
Sequences = Annotated[int, Field(ge=1, le=10**6)]
TokenizerPlace = Annotated[
    str,
    Field(
        pattern=r"^[^\x00]+$",
        json_schema_extra={ACCEPTED: "a directory, a hub id as in `org/model`, or `auto`"},
    ),
]
EngineVersion = Annotated[
    str,
    Field(
        pattern=r"^(auto|[0-9]{1,6}(\.[0-9]{1,6}){0,3}([-+.][0-9A-Za-z.+-]{1,40})?)$",
        json_schema_extra={ACCEPTED: "`auto` or a version, as in `3.3.5`"},
    ),
]


class ReplicaSettings(Settings):
    """`[[pools.replicas]]`: one engine instance."""

    name: Name
    """Unique name; it labels metrics and is told to clients in `x-llmshed-replica`."""
    url: ReplicaUrl
    """`http://HOST:PORT` of the engine, or `simulated:` for a simulated replica inside this process."""


class PoolSettings(Settings):
    """`[[pools]]`: replicas of one model that serve the same lanes."""

    name: Name = "main"
    """Unique name of the pool."""
    engine: Literal["tgi"] = "tgi"
    """Engine of the replicas."""
    engine_version: EngineVersion = "auto"
    """Version of the engine (`3.3.5`); `auto` takes it from the engine's `/info`."""
    model: ModelName = "auto"
    """Model id that clients ask for; `auto` takes it from the engine's `/info`."""
    aliases: tuple[ModelName, ...] = ("tgi", "dummy")
    """Other model names that clients may send: text-generation sends `tgi`, huggingface_hub sends `dummy`."""
    lanes: Lanes = ("interactive", "bulk")
    """Lanes that the pool serves."""
    replicas: Annotated[tuple[ReplicaSettings, ...], Field(min_length=1)]
    """The replicas."""
    tokenizer: TokenizerPlace = "auto"
    """Directory, hub id, or `auto`: the hub id is the model id that the engine tells."""
    profile: FilePath | None = None
    """Profile file that `llmshed calibrate` wrote. Unset: a simulated replica's own, else `uncalibrated`."""
    ladder: LadderPlace | None = None
    """Degradation ladder of the pool: `source`, `full` or a file. Unset: it refuses by budgets and queues alone."""
    on_count_mismatch: Literal["refuse", "derate", "warn"] = "refuse"
    """When the self-check counts other than the engine: keep the replica out, derate it, or warn. It is made each time
    a replica is met (at start, when it comes back, when its `/info` changes), and not while it serves."""
    on_mismatch: Literal["derate", "warn", "refuse"] = "derate"
    """When a replica is not what its profile was measured on: derate it, warn, or keep it out. `refuse` leaves the last
    replica of a pool in service, derated. Compared when it is met and, with some of its counts, each minute."""
    derate_ratio: Ratio = 0.5
    """Share of the gross ceiling that is taken away while a replica is derated."""
    gross_ceiling_tokens: Tokens | None = None
    """Gross ceiling of each replica, for a pool without a profile."""
    max_concurrent_sequences: Sequences | None = None
    """Hard cap of each replica in sequences; unset: the profile's, else the engine's `max_concurrent_requests`."""
    max_total_tokens: Tokens | None = None
    """Most input and output tokens of one sequence; unset: what the engine tells."""
    release_grace_seconds: Seconds = 1.0
    """How long the tokens of a gone client stay charged after its first token."""
    allow_truncate: bool = False
    """Take TGI's `truncate`; both counts are then told. Otherwise it is refused, since it cuts a prompt silently."""
    image_tokens: Tokens | None = None
    """Upper bound of the tokens of one image; unset: the engine is asked to count prompts with images."""
    declared: DeclaredFacts = DeclaredFacts()
    """What the engine does not tell of itself."""


class AdmissionSettings(Settings):
    """`[admission]`: rules that hold for all pools."""

    mode: Literal["enforce", "observe"] = "enforce"
    """`observe` decides, records and counts as if it acted, and lets everything through that an engine could answer."""
    guard_band_ratio: Ratio = 0.10
    """Part of a gross ceiling that is never lent, where the profile names none."""
    retry_jitter_ratio: Annotated[float, Field(ge=0, le=4)] = 1.0
    """A Retry-After is drawn between the estimate and (1 + this) times it: callers refused together come back apart."""
    max_retry_after_seconds: Seconds = 60.0
    """Longer waits are told truly, with `x-should-retry: false`, since clients mishandle them."""
