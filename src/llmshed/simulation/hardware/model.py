"""The model of a replica file, and what it describes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from llmshed.config.base import Name, Settings
from llmshed.config.validation import Remark, refuse_contradictions
from llmshed.simulation.building import Parameters
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.hardware.contradictions import (
    engine_contradictions,
    parallel_contradictions,
    shape_contradictions,
)
from llmshed.simulation.hardware.derivation import Derivation, derive
from llmshed.simulation.hardware.engine import engine_parameters
from llmshed.simulation.hardware.sections import Efficiency, Engine, Gpu, Measured, Model
from llmshed.simulation.parameters import MAX_TOKENS


@dataclass(frozen=True, slots=True)
class ReplicaDescription:
    """What a replica file says, ready to be simulated.

    Args:
        name: the file's own name for the replica.
        model_id: the model that it serves.
        parameters: for the scheduler.
        derivation: what was worked out before measured values took their places.
    """

    name: str
    model_id: str
    parameters: Parameters
    derivation: Derivation


class ReplicaFile(Settings):
    """One model on one kind of GPU behind one engine."""

    schema_: Annotated[Literal["llmshed.replica/1"], Field(alias="schema")]
    """Version of this format."""
    name: Name
    """Name of the replica."""
    model: Model
    """Shape of the model."""
    gpu: Gpu
    """The GPU, and how many share the model."""
    efficiency: Efficiency
    """What the engine reaches of it."""
    engine: Engine
    """The engine and its limits."""
    measured: Measured = Measured()
    """What was measured and takes the place of what is derived."""

    def with_values(self, engine: Mapping[str, Any], measured: Mapping[str, Any]) -> Self:
        """Return the file as if it held other values; what it leaves out is then chosen by them.

        Args:
            engine: settings of `[engine]` by their names.
            measured: settings of `[measured]` by their names.

        The values are of the right types; `describe` looks at their ranges and at what they contradict.
        """
        return self.model_copy(
            update={
                "engine": self.engine.model_copy(update=dict(engine)),
                "measured": self.measured.model_copy(update=dict(measured)),
            }
        )

    def describe(self) -> ReplicaDescription:
        """Return what the file describes.

        Raises:
            ValueError: numbers contradict each other; never for a file as it was read.
        """
        derivation = derive(self.model, self.gpu, self.efficiency)
        kv_tokens = self.measured.kv_tokens or derivation.kv_tokens
        times = self._times(derivation.step_times)
        parameters = engine_parameters(self.engine, self.model, self.gpu, kv_tokens, times)
        return ReplicaDescription(self.name, self.model.id, parameters, derivation)

    def _times(self, derived: StepTimes) -> StepTimes:
        measured = self.measured.model_dump(exclude={"kv_tokens"}, exclude_none=True)
        return replace(derived, **measured)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        refuse_contradictions(
            chain(
                shape_contradictions(self.model),
                parallel_contradictions(self.model, self.gpu),
                engine_contradictions(self.engine, self.model),
            )
        )
        refuse_contradictions(self._memory_contradictions())
        refuse_contradictions(self._limit_contradictions())
        return self

    def _memory_contradictions(self) -> Iterator[Remark]:
        """Yield why no KV cache is left, or why a coefficient leaves the range of the model."""
        involved = (("gpu",), ("model",), ("efficiency",), ("measured",))
        try:
            derivation = derive(self.model, self.gpu, self.efficiency)
        except ValueError as error:
            yield Remark((("efficiency",), *involved), f"gives step times that are no engine's: {error}")
            return
        if self.measured.kv_tokens is None and derivation.kv_tokens > MAX_TOKENS:
            yield Remark(
                (("gpu", "memory_bytes"), *involved),
                f"{self.gpu.memory_bytes} leaves room for KV of {derivation.kv_tokens} tokens, of"
                f" {derivation.kv_bytes_per_token:g} bytes each; at most {MAX_TOKENS} are simulated",
            )
        if self.measured.kv_tokens is None and derivation.kv_tokens < 2:
            yield Remark(
                (("gpu", "memory_bytes"), *involved),
                f"{self.gpu.memory_bytes} is too little: {self.efficiency.memory_ratio:g} of it, less"
                f" {derivation.weight_bytes:.0f} for weights and {self.efficiency.reserve_bytes} in reserve, leaves"
                f" {derivation.kv_memory_bytes:.0f} for KV of {derivation.kv_bytes_per_token:.0f} a token",
            )

    def _limit_contradictions(self) -> Iterator[Remark]:
        try:
            self.describe()
        except ValueError as error:
            yield Remark((("engine",), ("gpu",), ("model",), ("efficiency",), ("measured",)), str(error))
