"""What was sent to which replica, as `llmshed calibrate` and `llmshed profile verify` tell it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmshed.calibration.plan import Plan

    from ._calibrate_target import Replica


def facts_in_words(url: str, replica: "Replica", plan: "Plan", mix: str, seed: int) -> dict[str, str]:
    """Return the replica, what was sent and the objectives, for people."""
    info = replica.info
    kv_tokens = info.max_batch_total_tokens
    lanes = sorted({shape.lane for shape in plan.mix})
    bounds = "; ".join(
        f"{lane}: TTFT {plan.ttft_bound_seconds(lane):g} s, TPOT {plan.tpot_bound_seconds(lane):g} s" for lane in lanes
    )
    return {
        "replica": url,
        "engine": f"{replica.client.engine.name} {info.version}",
        "model": info.model_id,
        "KV cache by the engine": "not told" if kv_tokens is None else f"{kv_tokens:,} tokens",
        "tokenizer": replica.files.name,
        "mix": mix,
        "objectives of the engine": bounds,
        "seed": str(seed),
    }


def facts_as_object(url: str, replica: "Replica", mix: str, seed: int) -> dict[str, Any]:
    """Return the replica and what was sent, for machines."""
    info = replica.info
    return {
        "replica": url,
        "engine": replica.client.engine.name,
        "engine_version": info.version,
        "model_id": info.model_id,
        "kv_tokens": info.max_batch_total_tokens,
        "mix": mix,
        "seed": seed,
    }
