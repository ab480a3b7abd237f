"""What is known of a replica, in the fields of a fingerprint."""

from llmshed.config.declared import DeclaredFacts
from llmshed.config.pools import PoolSettings
from llmshed.gateway.replicas.serving import Serving
from llmshed.profile.comparison import KINDS, Fact, Facts


def told_facts(pool: PoolSettings, serving: Serving) -> Facts:
    """Return what a replica tells, and the tokenizer and template by which the gateway counts as it does.

    Those are taken for the engine's own where the self-check found that both count alike.
    """
    info, digests, check = serving.info, serving.counter.digests, serving.self_check
    counts_alike = check.compared > 0 and not check.mismatches
    return _known(
        {
            "engine": pool.engine,
            "model_id": info.model_id,
            "model_revision": info.model_revision,
            "engine_version": info.version,
            "dtype": info.dtype,
            "tokenizer_sha256": digests.tokenizer_sha256 if counts_alike else None,
            "template_sha256": digests.template_sha256 if counts_alike else None,
            "limits.max_input_tokens": info.max_input_tokens,
            "limits.max_total_tokens": info.max_total_tokens,
            "limits.max_batch_total_tokens": info.max_batch_total_tokens,
            "limits.max_concurrent_requests": info.max_concurrent_requests,
        }
    )


def declared_facts(declared: DeclaredFacts) -> Facts:
    """Return what the operator declares of a pool's replicas."""
    stated = declared.model_dump(exclude_none=True)
    return {name if name in KINDS else f"limits.{name}": value for name, value in stated.items()}


def _known(facts: dict[str, Fact | None]) -> Facts:
    return {name: fact for name, fact in facts.items() if fact is not None}
