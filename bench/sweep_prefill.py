"""The prefill rate at which running streams keep their pace, found through the prefill window that will meter it.

Prompts that are let in as they come clump, and those that a window lets in do not, so the rate is looked for with the
window in place: one replica, more short answers than it can serve, and the daemon's own controller before it. The rate
is the highest, to 1 %, at which 95 of 100 answers keep the TPOT objective.
"""

from collections.abc import Iterator
from math import exp, log
from random import Random

from llmshed.config.loading import load_config
from llmshed.profile import Profile
from llmshed.simulation.building import build_model
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.whatif.idle import idle_times
from llmshed.whatif.staging import build_controller, setting_from
from llmshed.whatif.world import RunPlan, simulate
from llmshed.workload.arrivals import POISSON_ARRIVALS
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

SHORT_OUTPUT_TOKENS = 32
SHORTEST_PROMPT_TOKENS = 64
OFFERED_RATIO = 2.0
"""Prompt tokens that come, by those that an idle replica works through: the window decides, not the arrivals."""
SECONDS = 120.0
PRECISION = 0.01

_CONFIG = """
[lanes.interactive]
ttft_objective_seconds = {ttft:g}
[[pools]]
replicas = [{{ name = "a", url = "simulated:" }}]
"""


def safe_prefill_rate(parameters: ReplicaParameters, profile: Profile) -> int:
    """Return the rate in tokens a second; what the profile says of it is not looked at."""
    lane = profile.lanes.interactive
    longest = idle_times(lambda: build_model(parameters), lane.max_input_tokens, 1, ceiling_tokens=1)
    if longest is None:
        raise ValueError("the replica refuses the longest prompt of the lane")
    fastest = lane.max_input_tokens / longest.ttft_seconds
    low, high = 0.25 * fastest, fastest
    while high > (1 + PRECISION) * low:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _holds(parameters, profile, middle, fastest) else (low, middle)
    return int(low)


def _holds(parameters: ReplicaParameters, profile: Profile, rate: float, fastest: float) -> bool:
    if profile.prefill is None or profile.latency is None:
        raise ValueError("the profile tells nothing of prefill")
    metered = profile.prefill.model_copy(update={"safe_tokens_per_second": rate})
    tried = profile.model_copy(update={"prefill": metered})
    objective = max(profile.lanes.interactive.ttft_objective_seconds, 5 * profile.latency.unloaded_ttft_p95_seconds)
    config = load_config(_CONFIG.format(ttft=objective), "bench/sweep", {}, {}).config
    setting = setting_from(config, {"main": tried}, parameters, {"main": 1})
    rng = Random("bench/sweep")  # noqa: S311 - draws of lengths and gaps, nothing is kept secret
    traffic = list(_prompts(profile.lanes.interactive.max_input_tokens, OFFERED_RATIO * fastest, rng))
    report = simulate(setting, build_controller(setting), traffic, ClientModel.NONE, rng, RunPlan((1, 2, 3)))
    tpot = report.total.tpot_seconds.p95
    return tpot is not None and tpot <= profile.lanes.interactive.tpot_objective_seconds


def _prompts(longest_tokens: int, tokens_per_second: float, rng: Random) -> Iterator[TracedRequest]:
    """Yield prompts of log-uniform lengths at the instants of a Poisson process."""
    low, high = log(SHORTEST_PROMPT_TOKENS), log(longest_tokens)
    mean_tokens = (longest_tokens - SHORTEST_PROMPT_TOKENS) / (high - low)
    for at in POISSON_ARRIVALS.arrivals(tokens_per_second / mean_tokens, rng):
        if at > SECONDS:
            return
        tokens = round(exp(rng.uniform(low, high)))
        yield TracedRequest(at, tokens, SHORT_OUTPUT_TOKENS, SHORT_OUTPUT_TOKENS)
