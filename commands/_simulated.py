"""The parameters of a simulated replica: a file's or the defaults, with the options that were typed in their places."""

from dataclasses import replace
from typing import Any

from llmshed.simulation.cost import StepTimes
from llmshed.simulation.hardware.model import ReplicaDescription
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.versions import version_rules

DEFAULT_TOTAL_TOKENS = 8_192
DEFAULT_KV_TOKENS = 49_152
DEFAULT_PREFILL_TOKENS = 4_096


def simulated_parameters(
    limits: dict[str, Any], times: dict[str, float | None], description: ReplicaDescription | None
) -> ReplicaParameters:
    """Return the parameters that options and a replica file come to; an option wins over the file.

    Args:
        limits: values of `ReplicaParameters` by name; None where no option was typed.
        times: the same for `StepTimes`.
        description: what the replica file says; None without one.

    Raises:
        ValueError: numbers contradict each other, or the file describes another engine; the text names them.
    """
    given = {name: value for name, value in limits.items() if value is not None}
    timed = {name: value for name, value in times.items() if value is not None}
    if description is None:
        return ReplicaParameters(**_launched(given), step_times=StepTimes(**timed))
    base = description.parameters
    if not isinstance(base, ReplicaParameters):
        raise ValueError(  # noqa: TRY004 - the mode that a file names is a value, not a type
            f'--replica {description.name}: its engine.mode is "vllm"; a simulated replica speaks the HTTP of TGI, '
            'so "tgi" is accepted here; llmshed whatif takes both'
        )
    if "max_total_tokens" in given:
        given.setdefault("max_input_tokens", min(base.max_input_tokens, given["max_total_tokens"] - 1))
    return replace(base, **given, step_times=replace(base.step_times, **timed))


def _launched(given: dict[str, Any]) -> dict[str, Any]:
    """Fill in what TGI's launcher works out from the rest."""
    parameters: dict[str, Any] = {"version": "3.3.5", "max_total_tokens": DEFAULT_TOTAL_TOKENS} | given
    total = parameters["max_total_tokens"]
    longest = parameters.setdefault("max_input_tokens", total - 1)
    in_pieces = version_rules(parameters["version"]).chunked_prefill
    least = DEFAULT_PREFILL_TOKENS if in_pieces else max(DEFAULT_PREFILL_TOKENS, longest)
    parameters.setdefault("max_batch_prefill_tokens", least)
    parameters.setdefault("kv_tokens", max(DEFAULT_KV_TOKENS, total))
    return parameters
