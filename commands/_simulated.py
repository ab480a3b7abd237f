"""The parameters of a simulated replica: a file's or the defaults, with the options that were typed in their places."""

from typing import Any

from llmshed.simulation.cost import StepTimes
from llmshed.simulation.hardware.model import ReplicaFile
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.simulation.versions import version_rules

DEFAULT_TOTAL_TOKENS = 8_192
DEFAULT_KV_TOKENS = 49_152
DEFAULT_PREFILL_TOKENS = 4_096


def simulated_parameters(
    limits: dict[str, Any], times: dict[str, float | None], file: ReplicaFile | None
) -> ReplicaParameters:
    """Return the parameters that options and a replica file come to.

    An option takes the place of the file's setting, and what the file leaves out follows from the option: with another
    version, for instance, prompts are cached and cut into pieces as that version does by itself.

    Args:
        limits: values of `ReplicaParameters` by name; None where no option was typed.
        times: the same for `StepTimes`.
        file: the replica file; None without one.

    Raises:
        ValueError: numbers contradict each other, or the file describes another engine; the text names them.
    """
    given = {name: value for name, value in limits.items() if value is not None}
    measured: dict[str, Any] = {name: value for name, value in times.items() if value is not None}
    if file is None:
        return ReplicaParameters(**_launched(given), step_times=StepTimes(**measured))
    if file.engine.max_input_tokens is not None and "max_total_tokens" in given:
        given.setdefault("max_input_tokens", min(file.engine.max_input_tokens, given["max_total_tokens"] - 1))
    if "kv_tokens" in given:
        measured["kv_tokens"] = given.pop("kv_tokens")
    of_tgi = file.engine.mode == "tgi"
    parameters = file.with_values(engine=given, measured=measured).describe().parameters if of_tgi else None
    if not isinstance(parameters, ReplicaParameters):
        raise ValueError(  # noqa: TRY004 - the mode that a file names is a value, not a type
            f'--replica {file.name}: its engine.mode is "{file.engine.mode}"; a simulated replica speaks the HTTP of '
            'TGI, so "tgi" is accepted here; llmshed whatif takes both'
        )
    return parameters


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
