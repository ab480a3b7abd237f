"""TGI's checks of generation parameters, in its order and with its texts (router/src/validation.rs)."""

import json
from typing import Any, assert_never

from llmshed.emulator.failures import invalid
from llmshed.emulator.forms import Grammar, JsonGrammar, Parameters, RegexGrammar, SchemaGrammar
from llmshed.simulation.parameters import ReplicaParameters

MAX_TOP_N_TOKENS = 5


def check_parameters(inputs: str, parameters: Parameters, limits: ReplicaParameters) -> None:
    """Check everything that needs no token count.

    Raises:
        TgiError: 422 with the text of the first rule that is broken.
    """
    best_of = parameters.best_of or 1
    if best_of > 1 and not parameters.samples:
        raise invalid("you must use sampling when `best_of` is > 1")
    _check_sampling(parameters)
    if parameters.max_new_tokens == 0:
        raise invalid("`max_new_tokens` must be strictly positive")
    if len(parameters.stop) > limits.max_stop_sequences:
        raise invalid(
            f"`stop` supports up to {limits.max_stop_sequences} stop sequences. Given: {len(parameters.stop)}"
        )
    if best_of > 1 and parameters.seed is not None:
        raise invalid("`seed` must not be set when `best_of` > 1")
    if (parameters.top_n_tokens or 0) > MAX_TOP_N_TOKENS:
        raise invalid(f"`top_n_tokens` must be >= 0 and <= {MAX_TOP_N_TOKENS}. Given: {parameters.top_n_tokens}")
    if not inputs:
        raise invalid("`inputs` cannot be empty")
    if parameters.truncate is not None and not 1 <= parameters.truncate <= limits.max_input_tokens:
        raise invalid(
            f"`truncate` must be strictly positive and less than {limits.max_input_tokens}. "
            f"Given: {parameters.truncate}"
        )


def check_grammar(grammar: Grammar | None) -> None:
    """Check what TGI needs of a grammar before the shard compiles it; that a schema is one is taken on trust.

    Raises:
        TgiError: 422 with TGI's text.
    """
    match grammar:
        case None | RegexGrammar():
            return
        case JsonGrammar(value=value):
            _check_schema(_parsed(value))
        case SchemaGrammar(value=value):
            _check_schema(value.definition)
        case _:
            assert_never(grammar)


def check_streamed(parameters: Parameters) -> None:
    """Check what a stream cannot have; before the permit.

    Raises:
        TgiError: 422 with TGI's text.
    """
    if (1 if parameters.best_of is None else parameters.best_of) != 1:
        raise invalid("`best_of` != 1 is not supported when streaming tokens")
    if parameters.decoder_input_details:
        raise invalid("`decoder_input_details` == true is not supported when streaming tokens")


def check_best_of(best_of: int, limits: ReplicaParameters) -> None:
    """Check the number of copies; before any permit.

    Raises:
        TgiError: 422 with TGI's text.
    """
    if limits.max_best_of == 1 and best_of != 1:
        raise invalid("`best_of` != 1 is not allowed for this endpoint")
    if best_of > limits.max_best_of:
        raise invalid(f"`best_of` must be > 0 and <= {limits.max_best_of}. Given: {best_of}")


def _parsed(value: Any) -> Any:
    """Return a schema that may have been given as text."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError as error:
            raise invalid(f"grammar is not valid: {error}") from None
    if not isinstance(value, dict):
        raise invalid("grammar is not supported")
    return value


def _check_schema(schema: Any) -> None:
    if not isinstance(schema, dict) or "properties" not in schema:
        raise invalid("grammar is not valid: Grammar must have a 'properties' field")


def _check_sampling(parameters: Parameters) -> None:
    if parameters.temperature is not None and parameters.temperature <= 0:
        raise invalid("`temperature` must be strictly positive")
    if parameters.repetition_penalty is not None and parameters.repetition_penalty <= 0:
        raise invalid("`repetition_penalty` must be strictly positive")
    if parameters.frequency_penalty is not None and not -2 <= parameters.frequency_penalty <= 2:
        raise invalid("`frequency_penalty` must be >= -2.0 and <= 2.0")
    if parameters.top_p is not None and not 0 < parameters.top_p < 1:
        raise invalid("`top_p` must be > 0.0 and < 1.0")
    if parameters.typical_p is not None and not 0 < parameters.typical_p < 1:
        raise invalid("`typical_p` must be > 0.0 and < 1.0")
    if parameters.top_k is not None and parameters.top_k <= 0:
        raise invalid("`top_k` must be strictly positive")
