"""From the text of a replica file to what it describes."""

from llmshed.config.paths import spelled
from llmshed.config.texts import TomlSyntaxError, line_of, read_toml
from llmshed.config.validation import validated
from llmshed.errors import ReplicaFileError
from llmshed.simulation.hardware.model import ReplicaDescription, ReplicaFile

_MODEL = {
    "id": "unnamed",
    "parameters": 10**9,
    "layers": 1,
    "hidden_size": 64,
    "attention_heads": 1,
    "kv_heads": 1,
    "head_size": 64,
    "vocabulary_size": 64,
    "context_tokens": 10**6,
}
_GPU = {
    "memory_bytes": 10**15,
    "bandwidth_bytes_per_second": 1e12,
    "flops_per_second": 1e14,
}
_EFFICIENCY = {
    "flops_ratio": 0.5,
    "bandwidth_ratio": 0.5,
    "memory_ratio": 0.9,
    "reserve_bytes": 0,
    "step_seconds": 0.01,
}
STAND_INS = {
    "schema": "llmshed.replica/1",
    "name": "unnamed",
    "mode": "tgi",
    "model": _MODEL,
    "gpu": {"name": "unnamed", **_GPU},
    "efficiency": _EFFICIENCY,
    "engine": {"mode": "tgi"},
    **_MODEL,
    **_GPU,
    **_EFFICIENCY,
}
"""A valid value for each setting without a default, so that rules between settings can be checked around a gap."""


def parse_replica(text: str, source: str) -> ReplicaDescription:
    """Return what a replica file describes; see `parse_replica_file`."""
    return parse_replica_file(text, source).describe()


def parse_replica_file(text: str, source: str) -> ReplicaFile:
    """Read and validate a replica file.

    Args:
        text: TOML of the schema `llmshed.replica/1`.
        source: name of the file, for messages.

    Raises:
        ReplicaFileError: one line for every mistake, `SOURCE:LINE: path: what is wrong, what is accepted`.
    """
    try:
        raw, lines = read_toml(text)
    except TomlSyntaxError as error:
        raise ReplicaFileError(f"{source}:{error}") from None
    file, mistakes = validated(ReplicaFile, raw, STAND_INS)
    if file is None:
        found = sorted((line_of(lines, mistake.path), spelled(mistake.path), mistake.message) for mistake in mistakes)
        raise ReplicaFileError("\n".join(f"{source}:{line}: {path}: {message}" for line, path, message in found))
    return file
