"""What one emulated replica is told at its start."""

from dataclasses import dataclass, field

from llmshed.emulator.faults import FaultPlan
from llmshed.simulation.parameters import ReplicaParameters

MODEL_ID = "llmshed/simulated"
"""Model id that an emulated replica tells unless it is given another."""


@dataclass(frozen=True, slots=True)
class EmulatorSettings:
    """An emulated replica.

    Args:
        parameters: limits, KV size, step times and version.
        model_id: told by `/info` and in answers.
        tokenizer: directory, hub id or `embedded`, as everywhere.
        seed: changes the made-up texts and their lengths.
        output_mean_tokens: mean of the natural output length; None lets every answer run to its ceiling.
        api_key: key that POST routes ask for; None for none.
        keep_alive_seconds: silence of a stream after which a comment is sent.
        drain_seconds: how long a stop waits for answers in progress, TGI's graceful termination timeout.
        faults: faults that are on from the start.
    """

    parameters: ReplicaParameters = field(default_factory=ReplicaParameters)
    model_id: str = MODEL_ID
    tokenizer: str = "embedded"
    seed: int = 0
    output_mean_tokens: float | None = 128.0
    api_key: str | None = None
    keep_alive_seconds: float = 15.0
    drain_seconds: float = 90.0
    faults: FaultPlan = field(default_factory=FaultPlan)

    def __post_init__(self) -> None:
        """Refuse a model without a name, and a mean that no output can have.

        Raises:
            ValueError: `model_id` is empty, or `output_mean_tokens` is out of range.
        """
        if not self.model_id:
            raise ValueError("model_id is empty; a name is needed, as in org/model")
        if self.output_mean_tokens is not None and not 1 <= self.output_mean_tokens <= 1_000_000:
            raise ValueError(f"output_mean_tokens is {self.output_mean_tokens:g}; accepted are 1 to 1000000")
