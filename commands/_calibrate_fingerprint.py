"""What a profile of `llmshed calibrate` says that it was measured on."""

import datetime as dt
from typing import TYPE_CHECKING, Any

from llmshed.profile.fingerprint import Behaviour, EngineLimits, Fingerprint

if TYPE_CHECKING:
    from llmshed.config.declared import DeclaredFacts
    from llmshed.tokenizing.files import EngineName

    from ._calibrate_target import Replica

_MOST_WORDS = 256


def fingerprint(
    replica: "Replica", declared: "DeclaredFacts", mix: str, day: dt.date, behaviour: Behaviour
) -> Fingerprint:
    """Return what the replica tells, else what was declared, and the tokenizer by which prompts were made.

    Args:
        replica: what was measured.
        declared: facts that its engine does not tell.
        mix: what was sent, in words.
        day: of the measurement.
        behaviour: how the idle replica moved.
    """
    info, stated = replica.info, declared.model_dump(exclude_none=True)
    engine = replica.client.engine.name
    rules: EngineName = "tgi" if engine == "tgi" else "vllm"
    template = replica.files.chat_template(rules)
    told: dict[str, Any] = {
        "model_id": info.model_id,
        "model_revision": info.model_revision,
        "engine": engine,
        "engine_version": info.version,
        "dtype": info.dtype,
        "tokenizer_sha256": replica.files.tokenizer_sha256,
        "template_sha256": None if template is None else template.sha256,
        "date": day,
        "workload": mix[:_MOST_WORDS],
        "behaviour": behaviour,
    }
    limits: dict[str, Any] = {
        "max_input_tokens": info.max_input_tokens,
        "max_total_tokens": info.max_total_tokens,
        "max_batch_total_tokens": info.max_batch_total_tokens,
        "max_concurrent_requests": info.max_concurrent_requests,
    }
    known_limits = _else_declared(limits, {name: value for name, value in stated.items() if name.startswith("max_")})
    facts = {name: value for name, value in stated.items() if not name.startswith("max_")}
    return Fingerprint(**_else_declared(told, facts), limits=EngineLimits(**known_limits))


def _else_declared(told: dict[str, Any], stated: dict[str, Any]) -> dict[str, Any]:
    """Return what is told, and what was declared where nothing is."""
    return stated | {name: value for name, value in told.items() if value is not None}
