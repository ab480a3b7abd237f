"""What sweeps found, and the profile that says so."""

from dataclasses import dataclass
from textwrap import fill

from llmshed.config.lanes import BulkThresholds, InteractiveThresholds
from llmshed.simulation.parameters import ReplicaParameters


@dataclass(frozen=True, slots=True)
class Found:
    """What the sweeps of one replica found: tokens, sequences and seconds, named as in a profile.

    Args:
        gross_ceiling_tokens: highest level that held below all that broke.
        broken_tokens: lowest level that broke; None where none did.
        hard_cap_sequences: most sequences that held with short contexts.
        safe_tokens_per_second: highest rate of prompts that held.
        inflight_tokens: most tokens of prompts that came at once and held.
        ceiling_seconds_per_token: greatest TPOT at levels up to the gross ceiling.
        curve: TPOT by the number of sequences, short contexts.
        ttft_p50_seconds: of an idle replica, over every length of prompt that the lane takes, each once.
        ttft_p95_seconds: likewise.
        decode_step_seconds: one step with one sequence.
    """

    gross_ceiling_tokens: int
    broken_tokens: int | None
    hard_cap_sequences: int
    safe_tokens_per_second: int
    inflight_tokens: int
    ceiling_seconds_per_token: float
    curve: tuple[tuple[int, float], ...]
    ttft_p50_seconds: float
    ttft_p95_seconds: float
    decode_step_seconds: float


def profile_text(name: str, parameters: ReplicaParameters, lane: InteractiveThresholds, found: Found) -> str:
    """Return a profile of the schema `llmshed.profile/1` as TOML, with comments on where each number is from."""
    return "\n".join(
        (_head(name, lane), _budget(parameters, lane, found), _rates(lane, found), _made_for(parameters, lane, found))
    )


def _head(name: str, lane: InteractiveThresholds) -> str:
    ttft, tpot = lane.ttft_objective_seconds, lane.tpot_objective_seconds
    told = _comment(
        f"profiles/replicas/{name}.toml, swept without noise in virtual time: `python bench/sweep.py {name}`. Nothing"
        f" here was measured on a GPU. A level holds while the worst request has its first token within the engine's"
        f" share, 0.7, of max({ttft:g} s, 5 x its TTFT on an idle replica), and then {tpot:g} s a token."
    )
    return f"""\
{told}
schema = "llmshed.profile/1"
name = "{name}"
version = "1"
"""


def _budget(parameters: ReplicaParameters, lane: InteractiveThresholds, found: Found) -> str:
    broken = found.broken_tokens
    knee = "no level broke" if broken is None else f"the lowest level that broke is {broken:,}"
    high = "" if broken is None else f"gross_ceiling_high_tokens = {broken - 1:_}\n"
    ceiling = _comment(
        f"Answers that run to their ceiling, 64 to {lane.max_input_tokens:,} tokens in and"
        f" {lane.default_output_tokens:,} or {lane.max_output_tokens:,} out, one client more at a time up to the"
        f" engine's permits; {knee}."
    )
    return f"""\
[budget]
{ceiling}
gross_ceiling_tokens = {found.gross_ceiling_tokens:_}
gross_ceiling_low_tokens = {found.gross_ceiling_tokens:_}
{high}guard_band_ratio = 0.10
# 16 tokens in and 256 out; the engine has {parameters.max_concurrent_requests:,} permits.
hard_cap_sequences = {found.hard_cap_sequences:_}
# TGI holds the KV of a whole chunk from its first step, so it never preempts.
preemptions_per_minute = 0
basis = "declared"
rule = "exhaustive-noise-free-sweep"
"""


def _rates(lane: InteractiveThresholds, found: Found) -> str:
    curve = "".join(f"  {{ sequences = {n}, seconds_per_token = {tpot:.5f} }},\n" for n, tpot in found.curve)
    return f"""\
[prefill]
# Twice what an idle replica prefills, through this profile's own prefill window: prompts of 64 to
# {lane.max_input_tokens:,} tokens, as many of each octave, at random instants, 32 tokens out; TPOT held for 95 of 100.
safe_tokens_per_second = {found.safe_tokens_per_second:_}
# Prompts of 256, 1,024 and {lane.max_input_tokens:,} tokens, all at once, on an idle replica; the least of the three.
inflight_tokens = {found.inflight_tokens:_}

[decode]
# The slowest of all levels up to the gross ceiling.
seconds_per_token = {found.ceiling_seconds_per_token:.5f}
curve = [
{curve}]

[latency]
# Every prompt of 1 to {lane.max_input_tokens:,} tokens once.
unloaded_ttft_p50_seconds = {found.ttft_p50_seconds:.4f}
unloaded_ttft_p95_seconds = {found.ttft_p95_seconds:.4f}
"""


def _made_for(parameters: ReplicaParameters, lane: InteractiveThresholds, found: Found) -> str:
    bulk = BulkThresholds()
    return f"""\
[limits]
max_input_tokens = {parameters.max_input_tokens:_}
max_total_tokens = {parameters.max_total_tokens:_}

[lanes.interactive]
max_input_tokens = {lane.max_input_tokens:_}
max_output_tokens = {lane.max_output_tokens:_}
default_output_tokens = {lane.default_output_tokens:_}
ttft_objective_seconds = {float(lane.ttft_objective_seconds)}
tpot_objective_seconds = {float(lane.tpot_objective_seconds)}

[lanes.bulk]
default_output_tokens = {bulk.default_output_tokens:_}
ttft_objective_seconds = {float(bulk.ttft_objective_seconds)}
tpot_objective_seconds = {float(bulk.tpot_objective_seconds)}

[bulk]
# Goodput holds bulk prompts to 5 x their idle TTFT, not to the minutes that the lane promises: at the few per cent that
# suit an engine on which a prompt blocks every start, hardly one would be good.
prefill_cap_ratio = 0.3

[fingerprint]
engine = "tgi"
engine_version = "{parameters.version}"
gpu = "none: simulated"

[fingerprint.limits]
max_input_tokens = {parameters.max_input_tokens:_}
max_total_tokens = {parameters.max_total_tokens:_}
max_batch_total_tokens = {parameters.kv_tokens:_}
max_batch_prefill_tokens = {parameters.max_batch_prefill_tokens:_}
max_concurrent_requests = {parameters.max_concurrent_requests:_}

[fingerprint.behaviour]
decode_step_seconds = {found.decode_step_seconds:.5f}
"""


def _comment(text: str) -> str:
    return fill(text, 118, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
