"""The step-time model: what one forward pass takes.

Symbols: P prompt tokens computed in the step, A attention pairs (each of the P tokens with every token before it in its
sequence, cached ones included), D decoding sequences, R tokens resident in the KV of decoding sequences.

    seconds(step) = step + max(weights, P x per_prefill_token + D x per_decoding_sequence)
                         + A x per_attention_pair + R x per_resident_token

The max is the roofline of the linear layers: below a certain number of tokens the weights have to be read from memory
whatever is computed with them, above it the arithmetic takes longer. Attention is apart, since it grows with context.
In a stretch of decodes R grows by D with each step and nothing else changes, so step times form an arithmetic series.
"""

from dataclasses import dataclass


def within(name: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter outside its range.

    Raises:
        ValueError: it is outside, or no number; the text names it and the range.
    """
    if not low <= value <= high:
        raise ValueError(f"{name} is {value:g}; accepted are {low:g} to {high:g}")


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
        step_seconds: fixed part of a step.
        seconds_per_prefill_token: added for each prompt token worked through in the step.
        seconds_per_decoding_sequence: added for each sequence that decodes in the step.
        weights_seconds: least that the two above take together.
        seconds_per_attention_pair: added for each prompt token and token before it.
        seconds_per_resident_token: added for each token in the KV of a decoding sequence.
    """

    step_seconds: float = 0.025
    seconds_per_prefill_token: float = 1 / 8000
    seconds_per_decoding_sequence: float = 0.000_1
    weights_seconds: float = 0.0
    seconds_per_attention_pair: float = 0.0
    seconds_per_resident_token: float = 0.0

    def __post_init__(self) -> None:
        """Refuse durations that are negative, endless or zero where time must pass."""
        within("step_seconds", self.step_seconds, 0.000_01, 3600)
        for name in (
            "seconds_per_prefill_token",
            "seconds_per_decoding_sequence",
            "weights_seconds",
            "seconds_per_attention_pair",
            "seconds_per_resident_token",
        ):
            within(name, getattr(self, name), 0, 10)

    def seconds(self, work: StepWork) -> float:
        """Return how long a step over this much work takes."""
        linear = (
            work.prefill_tokens * self.seconds_per_prefill_token
            + work.decoding_sequences * self.seconds_per_decoding_sequence
        )
        attention = (
            work.attention_pairs * self.seconds_per_attention_pair
            + work.resident_tokens * self.seconds_per_resident_token
        )
        return self.step_seconds + max(self.weights_seconds, linear) + attention

    def growth_seconds(self, decoding_sequences: int) -> float:
        """Return by how much each step of a stretch of decodes is longer than the one before it."""
        return decoding_sequences * self.seconds_per_resident_token
