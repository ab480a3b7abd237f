"""The model of a ladder file."""

from datetime import date
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from llmshed.admission.request import CLASSES, PriorityClass
from llmshed.config.base import ACCEPTED, Name, Seconds, Settings, Share, Tokens
from llmshed.config.validation import refuse_contradictions
from llmshed.ladder.contradictions import ladder_contradictions

Windows = Annotated[int, Field(ge=1, le=1440)]
Person = Annotated[
    str,
    Field(
        pattern=r"^[^\x00-\x1f\x7f]{1,128}$",
        json_schema_extra={ACCEPTED: "1 to 128 printable characters that name a person or a team"},
    ),
]
Word = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$",
        json_schema_extra={ACCEPTED: "a name of 1 to 64 letters, digits and `_`, as in `enable_thinking`"},
    ),
]
Version = Annotated[
    str,
    Field(
        pattern=r"^[0-9A-Za-z]([0-9A-Za-z._+-]{0,62}[0-9A-Za-z])?$",
        json_schema_extra={ACCEPTED: 'text of 1 to 64 letters, digits, `.`, `_`, `+` and `-`, as in "3" or "2026.1"'},
    ),
]

WindowSeconds = Annotated[float, Field(ge=0.1, le=86_400)]
"""Shorter windows hold too little to judge by, longer ones no longer follow a day."""
NeighbourFile = Annotated[
    str,
    Field(
        min_length=1,
        pattern=r"^[^\x00]*$",
        json_schema_extra={ACCEPTED: "the path of a file; a relative one starts at the ladder's directory"},
    ),
]


class RungAction(StrEnum):
    """What a rung does; the value is told in `x-llmshed-degraded`, logs and metrics."""

    STOP_BULK = "stop_bulk"
    """Bulk is not admitted to replicas that interactive work shares."""
    PREEMPT_BULK = "preempt_bulk"
    """Running asynchronous jobs go back to their queue; until there are jobs it applies to nothing."""
    DROP_ENRICHMENT = "drop_enrichment"
    """Tools and parts that the caller declared as enrichment are left out."""
    SHRINK_CONTEXT = "shrink_context"
    """Parts that the caller marked optional are left out, in its order and down to its floor."""
    CAP_OUTPUT = "cap_output"
    """Output ceilings are lowered, on the wire and in the reservation."""
    DISABLE_THINKING = "disable_thinking"
    """The model is told not to think before it answers."""
    SMALLER_MODEL = "smaller_model"
    """The request goes to another pool's model, counted and reserved anew."""
    SHED_INTERACTIVE = "shed_interactive"
    """Interactive arrivals of the lowest classes are refused."""

    @property
    def changes_answers(self) -> bool:
        """Say whether it changes what is answered, rather than who is."""
        return self not in {RungAction.STOP_BULK, RungAction.PREEMPT_BULK, RungAction.SHED_INTERACTIVE}


class EntrySignal(StrEnum):
    """What a rung can be entered by; GPU utilisation is none of them, since a server at 90 % may be healthy."""

    QUEUE_DELAY = "queue_delay_seconds"
    """The signal of the package's text, p95."""
    QUEUED_PREFILL = "queued_prefill_tokens"
    """Prompt tokens that wait in the pool."""
    OLDEST_AGE = "oldest_queue_age_seconds"
    """Age of the oldest interactive request that waits in the pool."""
    KV_USED = "kv_used_ratio"
    """Share of the KV cache in use, highest of the pool's replicas."""
    PREEMPTIONS = "preemptions_over_budget"
    """Preemptions a minute of the pool's replicas, by what their profiles permit; 1 is all of it."""
    REPLICAS_LOST = "replicas_lost"
    """Replicas of the pool that were up and are down."""


def _no_utilisation(value: object) -> object:
    """Refuse the one signal that is often asked for and tells no overload; what is accepted is told behind it."""
    if isinstance(value, str) and ("util" in value.lower() or "gpu" in value.lower()):
        raise ValueError(
            "a GPU at 90 % may be healthily busy or thirty seconds from a full KV cache, so its utilisation tells no"
            " overload; the queue's delay, the prefill backlog and the KV cache's use do"
        )
    return value


class Scope(Settings):
    """`[rungs.scope]`: whom a rung touches; what is unset is no bound."""

    classes: Annotated[tuple[Annotated[PriorityClass, Field(strict=False)], ...], Field(min_length=1)] = CLASSES
    """Priority classes."""
    tenants: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    """Tenants; unset: all."""

    def covers(self, priority_class: PriorityClass, tenant: str) -> bool:
        """Say whether a request is touched."""
        return priority_class in self.classes and (self.tenants is None or tenant in self.tenants)


class Entry(Settings):
    """`[rungs.entry]`: for how long which signal has to be above what; each window counts whole."""

    signal: Annotated[EntrySignal, Field(strict=False), BeforeValidator(_no_utilisation)] = EntrySignal.QUEUE_DELAY
    """The signal."""
    above: Annotated[float, Field(ge=0, le=1e12)] | None = None
    """The bound, in the signal's unit; unset for the queue delay: the ladder's objective."""
    windows: Windows = 2
    """Windows in a row, counted from the step before."""


class Exit(Settings):
    """`[rungs.exit]`: when the rung is left again."""

    below_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.7
    """Share of the entry's bound that the signal has to be below; where the signal is not told, of the objective."""
    windows: Windows = 5
    """Windows in a row."""


class Rung(Settings):
    """`[[rungs]]`: one agreed step."""

    name: Name
    """Unique name; it labels metrics and is what `llmshed ladder trigger` takes."""
    action: Annotated[RungAction, Field(strict=False)]
    """What it does."""
    owner: Person
    """Who answers for it."""
    agreed_on: date
    """When it was agreed."""
    scope: Scope = Scope()
    """Whom it touches."""
    entry: Entry = Entry()
    """When it is climbed to."""
    exit: Exit = Exit()
    """When it is left."""
    largest_quality_gap: Share | None = None
    """Largest agreed loss of the evaluation's result against the primary path, as a share of it."""
    max_output_tokens: Tokens | None = None
    """`cap_output`: the highest ceiling."""
    drop_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """`shrink_context`: share of the optional parts that is left out, rounded up."""
    pool: Name | None = None
    """`smaller_model`, `disable_thinking`: the pool that answers instead."""
    template_argument: Word | None = None
    """`disable_thinking`: argument of the chat template that is set to false, on engines that pass it."""
    prompt_suffix: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """`disable_thinking`: text put behind the last user message, for models that heed it (`/no_think`)."""
    requeue_tokens_per_minute: Tokens | None = None
    """`preempt_bulk`: most reserved tokens of running jobs that are sent back in a minute."""


class Windowing(Settings):
    """`[windows]`: how the signal is taken."""

    window_seconds: WindowSeconds = 60.0
    """Length of a window."""
    sample_minimum: Annotated[int, Field(ge=1, le=10**6)] = 20
    """Fewest interactive arrivals by which a window is judged; with fewer it is calm unless somebody waits too long."""
    objective_seconds: Seconds | None = None
    """The queue delay's objective; unset: the queue's share of the interactive lane's TTFT objective."""
    reentry_windows: Windows = 10
    """A climb within so many windows after a step back is an early re-entry."""
    most_exit_windows: Windows = 40
    """Most windows that a step back takes, however often it was re-entered."""
    descend_needs_room: bool = True
    """Whether a step back also needs the offered token rate to be within the measured service rate."""


class Ladder(Settings):
    """One version of one agreed ladder, valid in itself; whether it suits a configuration is told elsewhere."""

    schema_: Annotated[Literal["llmshed.ladder/1"], Field(alias="schema")]
    """Version of this format."""
    name: Name
    """Name of the ladder."""
    version: Version
    """Version: raised with every change that was agreed."""
    windows: Windowing = Windowing()
    """How the signal is taken."""
    evaluations: NeighbourFile | None = None
    """File into which `llmshed ladder drill` writes what each degraded path was worth."""
    rungs: Annotated[tuple[Rung, ...], Field(min_length=1, max_length=32)]
    """The steps, in the order in which they are climbed."""

    @property
    def label(self) -> str:
        """Return `name@version`."""
        return f"{self.name}@{self.version}"

    def rung_number(self, name: str) -> int | None:
        """Return the place of a rung, 1 for the first; None for one that is not there."""
        return next((number for number, rung in enumerate(self.rungs, 1) if rung.name == name), None)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        refuse_contradictions(ladder_contradictions(self))
        return self
