"""The step-time model: what one forward pass takes.

Symbols: P prompt tokens computed in the step, A attention pairs (each of the P tokens with every token before it in its
sequence, cached ones included), D decoding sequences, R tokens resident in the KV of decoding sequences.

    seconds(step) = step + weights + P x per_prefill_token + D x (per_decoding_sequence + per_sequence)
                  + A x per_attention_pair + R x per_resident_token + (P + D) x per_linked_token

Reading the weights and computing with them are added, though a roofline would take the larger of the two: kernels do
not hide one behind the other where both take long, which is where batches of an engine lie. The form was chosen by 50
published steps: 23 decodes and 23 prefills of Llama-7B on an A10G (github.com/Ying1123/VTC-artifact at 192c2e2,
fair_bench/cost_profile.json), four first tokens of Llama-2-7B and 70B on A100s (github.com/NVIDIA/TensorRT-LLM at
138f96d, docs/source/performance.md). With the same shares of bandwidth and arithmetic for all of a GPU's steps a sum
leaves a relative error of 7.5 % (root mean square), a maximum 11.6 %, and an overlap as a further parameter is fitted
to none. Not modelled is the rounding of batches to the tiles of a matrix product: batches just above 64, 128 or 256
take up to a fifth longer.

In a stretch of decodes R grows by D with each step and nothing else changes, so step times form an arithmetic series.
"""

from dataclasses import dataclass


def within(name: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter outside its range.

    Raises:
        ValueError: it is outside, or no number; the text names it and the range.
    """
    if not low <= value <= high:
        raise ValueError(f"{name} is {_shown(value)}; accepted are {_shown(low)} to {_shown(high)}")


def _shown(value: float) -> str:
    """Return a whole number with all of its digits, so that it is found again where it was typed."""
    return str(value) if isinstance(value, int) else f"{value:g}"


@dataclass(frozen=True, slots=True)
class StepWork:
    """What one step works through: P, A, D and R of the model above."""

    prefill_tokens: int = 0
    attention_pairs: int = 0
    decoding_sequences: int = 0
    resident_tokens: int = 0


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The coefficients of the model; all in seconds.

    Args:
        step_seconds: fixed part of a step: launches, scheduling.
        seconds_per_prefill_token: arithmetic of each prompt token worked through in the step.
        seconds_per_decoding_sequence: arithmetic of each sequence that decodes in the step.
        weights_seconds: reading the weights, once a step.
        seconds_per_attention_pair: added for each prompt token and token before it.
        seconds_per_resident_token: added for each token in the KV of a decoding sequence.
        seconds_per_sequence: work of the processor for each sequence that decodes: sampling, stop conditions, text.
        seconds_per_linked_token: added for each token of the step that goes over the link between GPUs.
    """

    step_seconds: float = 0.025
    seconds_per_prefill_token: float = 1 / 8000
    seconds_per_decoding_sequence: float = 0.000_1
    weights_seconds: float = 0.0
    seconds_per_attention_pair: float = 0.0
    seconds_per_resident_token: float = 0.0
    seconds_per_sequence: float = 0.0
    seconds_per_linked_token: float = 0.0

    def __post_init__(self) -> None:
        """Refuse durations that are negative, endless or zero where time must pass."""
        within("step_seconds", self.step_seconds, 0.000_01, 3600)
        for name in (
            "seconds_per_prefill_token",
            "seconds_per_decoding_sequence",
            "weights_seconds",
            "seconds_per_attention_pair",
            "seconds_per_resident_token",
            "seconds_per_sequence",
            "seconds_per_linked_token",
        ):
            within(name, getattr(self, name), 0, 10)

    def seconds(self, work: StepWork) -> float:
        """Return how long a step over this much work takes."""
        prefill = (
            work.prefill_tokens * self.seconds_per_prefill_token
            + work.attention_pairs * self.seconds_per_attention_pair
        )
        decode = (
            work.decoding_sequences * (self.seconds_per_decoding_sequence + self.seconds_per_sequence)
            + work.resident_tokens * self.seconds_per_resident_token
        )
        link = (work.prefill_tokens + work.decoding_sequences) * self.seconds_per_linked_token
        return self.step_seconds + self.weights_seconds + prefill + decode + link

    def growth_seconds(self, decoding_sequences: int) -> float:
        """Return by how much each step of a stretch of decodes is longer than the one before it."""
        return decoding_sequences * self.seconds_per_resident_token
