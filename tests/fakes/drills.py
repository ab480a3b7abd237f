"""Records of drills, as they would be written, for tests of what is made of them."""

from typing import Any

from llmshed.ladder.records import DrillRecord


def path_record(rung: str | None, terms: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
    """Return what a path was worth: half of the answers right, a tenth of the primary's result lost."""
    estimate = {"value": 0.1, "low": 0.05, "high": 0.15}
    return {
        "rung": rung, "terms": terms, "pool": "main", "model": "m", "facts": {"model_id": "m", "model_revision": "1"},
        "cases": 40, "answered": 40, "changed": 40 if rung else 0, "result": {"value": 0.5, "low": 0.4, "high": 0.6},
        "gap": estimate if rung else None, "ttft_seconds": 0.1, "latency_seconds": 1.0, "input_tokens": 4000,
        "output_tokens": 2000,
    } | changes  # fmt: skip


def drill_record(*paths: dict[str, Any], time: str = "2026-12-01T10:00:00Z", **changes: Any) -> DrillRecord:
    """Return a drill of pool `main` by paths behind the primary one."""
    written = {
        "schema": "llmshed.drill/1", "time": time, "pool": "main", "ladder": "small@1", "set_name": "set.jsonl",
        "set_sha256": "0" * 64, "paths": (path_record(None), *paths),
    }  # fmt: skip
    return DrillRecord.model_validate(written | changes)
