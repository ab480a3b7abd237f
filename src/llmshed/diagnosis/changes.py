"""The one thing to change for each cause: a setting where a setting is to blame, else what to do."""

from typing import NamedTuple

from llmshed.diagnosis.causes import Cause


class Change(NamedTuple):
    """One change.

    Args:
        setting: path of the setting in llmshed.toml or in a profile; None where no setting would cure it.
        what: what to do with it, as a sentence.
        watch: by which signals it shows whether it helped, worst first.
    """

    setting: str | None
    what: str
    watch: tuple[str, ...]


CHANGES: dict[Cause, Change] = {
    Cause.REPLICA_LOSS: Change(
        None,
        "Bring the replica back, or add one: `llmshed status` tells why each takes no work. No budget is wrong.",
        ("replicas_up", "missed"),
    ),
    Cause.DRIFTED_PROFILE: Change(
        "pools.profile",
        "Run `llmshed profile verify` against that replica, and `llmshed calibrate` for a new profile if it fails.",
        ("profile_mismatch", "miscounted"),
    ),
    Cause.TOKENIZER: Change(
        "counting.threads",
        "Give the count one more thread, if the machine has a CPU for it.",
        ("counting_p95", "refused_for_counting"),
    ),
    Cause.UPSTREAM: Change(
        None,
        "Look at the network and the engines' own logs: `llmshed_upstream_errors_total` says by kind how they fail.",
        ("upstream_errors", "missed"),
    ),
    Cause.STALL: Change(
        None,
        "Restart the engine that stands still; it is lent nothing meanwhile. Report its log to its maintainers.",
        ("stalls", "budget_factor"),
    ),
    Cause.KV_EXHAUSTION: Change(
        "pools.gross_ceiling_tokens",
        "Lend a tenth less: the cache holds less than the ceiling says, or somebody else uses the engine.",
        ("preemptions", "kv_used", "tpot_p95"),
    ),
    Cause.RETRY_ECHO: Change(
        "admission.retry_jitter_ratio",
        "Double it, and have the client that ignores Retry-After mended: decision lines name its tenant.",
        ("amplification", "missed"),
    ),
    Cause.MISSET_BUDGET: Change(
        "pools.gross_ceiling_tokens",
        "Lend a tenth more, or calibrate: the engine has room while the ledger is full.",
        ("refused_for_tokens", "tpot_p95", "kv_used"),
    ),
    Cause.MISSET_LANE: Change(
        "lanes.interactive.max_input_tokens",
        "Put it where the requests of that intent are again: the lanes' shares moved while the traffic did not.",
        ("interactive_share", "missed"),
    ),
    Cause.LONG_PREFILLS: Change(
        "lanes.interactive.max_input_tokens",
        "Lower it, so that the long prompts go to the bulk lane.",
        ("ttft_p95", "refused_for_prefill", "queued_prefill"),
    ),
    Cause.DECODE_SATURATION: Change(
        "lanes.interactive.default_output_tokens",
        "Lower it to what answers really take: ceilings are reserved whole. If they are used, add a replica.",
        ("refused_for_tokens", "lent", "tpot_p95"),
    ),
}
