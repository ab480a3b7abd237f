"""Profiles of simulated replicas by an exhaustive sweep without noise, in virtual time: `python bench/sweep.py`.

Four sweeps of one replica that serves nobody else, each upwards, one request at a time, until an objective breaks:

- KV: outputs run to their ceiling, for four shapes of prompt and output. The gross ceiling is the highest level of
  reserved tokens that held and lies below every level that broke.
- decode cap: short contexts. The hard cap is the most sequences that held.
- prefill in flight: prompts that come at once to an idle replica, for three lengths; the least of the three.
- prefill rate: short outputs, more prompts than can be served, let in by the prefill window itself: `sweep_prefill.py`.

What holds: for the worst request, a first token within the engine's share, 0.7, of max(lane objective, 5 x its TTFT on
an idle replica), and TPOT within the lane's objective. `llmshed calibrate` is to find the same numbers on engines.
"""

import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from replaying import quantile
from sweep_loads import Seen, Shape, burst, closed_loop
from sweep_prefill import safe_prefill_rate
from sweep_text import Found, profile_text

from llmshed.config.lanes import InteractiveThresholds
from llmshed.profile.parsing import parse_profile
from llmshed.simulation.building import build_model
from llmshed.simulation.hardware.parsing import parse_replica
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.whatif.idle import IdleTimes, idle_times

ROOT = Path(__file__).resolve().parents[1]
REPLICAS = ROOT / "profiles" / "replicas"
PROFILES = ROOT / "bench" / "profiles"
NAMES = ("llama-3-8b-h100", "llama-3-8b-a10g", "llama-3.1-8b-h100")
ENGINE_SHARE = 0.7
"""Part of an objective that is the engine's, the rest being the queue's (the default split)."""
IDLE_MULTIPLE = 5.0
FIRST_GUESS_TOKENS_PER_SECOND = 1
"""Stands in the profile until its prefill rate is found."""
SHORT_CONTEXT = Shape(16, 256)
CURVE = (1, 2, 4, 8, 16, 32, 64, 96, 128)
THRESHOLDS = InteractiveThresholds(ttft_objective_seconds=1.0)
"""The lane as it ships, but for its TTFT objective: goodput is counted with a shorter one."""


class Sweep:
    """The sweeps of one replica for the thresholds and objectives of one lane."""

    def __init__(self, parameters: ReplicaParameters, lane: InteractiveThresholds) -> None:
        """Stand before an idle replica."""
        self._parameters = parameters
        self._lane = lane
        self._build = partial(build_model, parameters)

    def find(self) -> Found:
        """Run all sweeps.

        Raises:
            ValueError: not even one request holds, so there is nothing to find.
        """
        cap_levels = self._held(SHORT_CONTEXT)
        gross, broken, slowest = self._kv()
        prompts = (256, 1024, self._lane.max_input_tokens)
        lengths = range(1, self._lane.max_input_tokens + 1)
        idle_ttfts = [self._idle(Shape(length, 1)).ttft_seconds for length in lengths]
        return Found(
            gross_ceiling_tokens=gross,
            broken_tokens=broken,
            hard_cap_sequences=len(cap_levels),
            safe_tokens_per_second=FIRST_GUESS_TOKENS_PER_SECOND,
            inflight_tokens=min(self._inflight(prompt) for prompt in prompts),
            ceiling_seconds_per_token=slowest,
            curve=tuple((n, cap_levels[n - 1].tpot_seconds) for n in CURVE if n <= len(cap_levels)),
            ttft_p50_seconds=quantile(idle_ttfts, 0.50),
            ttft_p95_seconds=quantile(idle_ttfts, 0.95),
            decode_step_seconds=cap_levels[0].tpot_seconds,
        )

    def _kv(self) -> tuple[int, int | None, float]:
        """Return the gross ceiling, the lowest level that broke, and the greatest TPOT up to the ceiling."""
        levels: list[tuple[int, float]] = []
        broken: list[int] = []
        for shape in self._whole_answers():
            held = self._held(shape)
            levels += [(clients * shape.reserved_tokens, seen.tpot_seconds) for clients, seen in enumerate(held, 1)]
            if len(held) < self._parameters.max_concurrent_requests:
                broken.append((len(held) + 1) * shape.reserved_tokens)
        lowest = min(broken, default=None)
        below = [level for level in levels if lowest is None or level[0] < lowest]
        gross = max(below)[0]
        return gross, lowest, max(tpot for _, tpot in below)

    def _whole_answers(self) -> tuple[Shape, ...]:
        """Return the shapes of the KV sweep: from the largest request of the lane to answers almost without prompt."""
        lane = self._lane
        return (
            Shape(lane.max_input_tokens, lane.max_output_tokens),
            Shape(lane.max_input_tokens, lane.default_output_tokens),
            Shape(lane.max_input_tokens // 4, lane.max_output_tokens),
            Shape(64, lane.max_output_tokens),
        )

    def _inflight(self, prompt_tokens: int) -> int:
        """Return the tokens of the most prompts that may come at once; one always may."""
        shape = Shape(prompt_tokens, 1)
        bound = self._ttft_bound(shape)
        prompts = 1
        while prompts < self._parameters.max_concurrent_requests and burst(self._build, shape, prompts + 1) <= bound:
            prompts += 1
        return prompts * prompt_tokens

    def _held(self, shape: Shape) -> list[Seen]:
        """Return how 1, 2, 3, ... clients fared, up to the last number that held."""
        bound = self._ttft_bound(shape)
        held: list[Seen] = []
        for clients in range(1, self._parameters.max_concurrent_requests + 1):
            seen = closed_loop(self._build, shape, clients)
            if seen.ttft_seconds > bound or seen.tpot_seconds > self._lane.tpot_objective_seconds:
                break
            held.append(seen)
        if not held:
            raise ValueError(f"not even one {shape} holds its objectives on this replica")
        return held

    def _ttft_bound(self, shape: Shape) -> float:
        objective = max(self._lane.ttft_objective_seconds, IDLE_MULTIPLE * self._idle(shape).ttft_seconds)
        return ENGINE_SHARE * objective

    def _idle(self, shape: Shape) -> IdleTimes:
        times = idle_times(self._build, shape.input_tokens, shape.output_tokens, shape.output_tokens)
        if times is None:
            raise ValueError(f"the replica refuses {shape}")
        return times


def profile_of(replica: Path, lane: InteractiveThresholds = THRESHOLDS) -> str:
    """Return the profile of a replica file as TOML, with how it was found.

    Raises:
        ReplicaFileError: the file holds mistakes.
        TypeError: the replica is not of Text Generation Inference.
        ValueError: nothing holds on it.
    """
    described = parse_replica(replica.read_text("utf-8"), replica.name)
    parameters = described.parameters
    if not isinstance(parameters, ReplicaParameters):
        raise TypeError(f"{replica.name} is not of Text Generation Inference")
    found = Sweep(parameters, lane).find()
    guessed = parse_profile(profile_text(described.name, parameters, lane, found), replica.name)
    rate = safe_prefill_rate(parameters, guessed)
    return profile_text(described.name, parameters, lane, replace(found, safe_tokens_per_second=rate))


def main(names: Iterable[str] = NAMES) -> None:
    """Write the profile of each replica of `profiles/replicas` that is named."""
    for name in names:
        (PROFILES / f"{name}.toml").write_text(profile_of(REPLICAS / f"{name}.toml"), encoding="utf-8")
        print(f"bench/profiles/{name}.toml")


if __name__ == "__main__":
    main(sys.argv[1:] or NAMES)
