"""One replica of stated step times as a file, a configuration before it, and traffic that is too much for it."""

import math
import random
from pathlib import Path

from fakes.logging_gate import LoggingGate
from llmshed.admission.request import Intent
from llmshed.config.loading import load_config
from llmshed.simulation.cost import StepTimes
from llmshed.simulation.parameters import ReplicaParameters
from llmshed.whatif.staging import build_controller, setting_from
from llmshed.whatif.world import RunPlan, simulate
from llmshed.workload.clients import ClientModel
from llmshed.workload.request import TracedRequest

REPLICA = """
schema = "llmshed.replica/1"
name = "hindcast"

[model]
id = "example/7b"
parameters = 7_248_023_552
layers = 32
hidden_size = 4096
attention_heads = 32
kv_heads = 8
head_size = 128
vocabulary_size = 32_768
context_tokens = 8192

[gpu]
name = "any"
memory_bytes = 24_152_899_584
bandwidth_bytes_per_second = 300e9
flops_per_second = 121e12

[efficiency]
flops_ratio = 0.65
bandwidth_ratio = 0.89
memory_ratio = 0.90
reserve_bytes = 1_500_000_000
step_seconds = 0.002
sequence_seconds = 0.000_03

[engine]
mode = "tgi"
version = "3.0.1"
prefix_caching = false

[measured]
kv_tokens = 12_000
step_seconds = {step}
weights_seconds = {weights}
seconds_per_prefill_token = {prefill}
seconds_per_decoding_sequence = {sequence}
seconds_per_attention_pair = 0.0
seconds_per_resident_token = 0.0
"""
MEAN_OUTPUT_TOKENS = 128
"""Above most ceilings, so that most answers run to theirs and no single length decides much."""
CONFIG = """
[lanes.interactive]
max_input_tokens = 600
max_output_tokens = 256
default_output_tokens = 256

[[pools]]
tokenizer = "embedded"
gross_ceiling_tokens = {ceiling}
replicas = [{replicas}]
"""


def replica_file(folder: Path, factor: float = 1.0) -> Path:
    """Write the replica with its step times multiplied, and return its file."""
    path = folder / f"replica-{factor:g}.toml"
    times = {"step": 0.0075, "weights": 0.0375, "prefill": 0.000_2, "sequence": 0.000_75}
    path.write_text(REPLICA.format(**{name: seconds * factor for name, seconds in times.items()}))
    return path


def config_text(urls: tuple[str, ...], ceiling_tokens: int = 12_000) -> str:
    replicas = ", ".join(f'{{ name = "r{number}", url = "{url}" }}' for number, url in enumerate(urls, 1))
    return CONFIG.format(ceiling=ceiling_tokens, replicas=replicas)


def too_much(seconds: float, rate: float, seed: int = 1) -> list[TracedRequest]:
    """Return Poisson traffic of both lanes: three in four short, the others of 650 to 1,000 tokens."""
    rng = random.Random(seed)  # noqa: S311 - one seed, one traffic
    requests: list[TracedRequest] = []
    at = rng.expovariate(rate)
    while at < seconds:
        short = rng.random() < 0.75
        requests.append(
            TracedRequest(
                at_seconds=at,
                input_tokens=min(int(rng.lognormvariate(math.log(150), 0.7)) + 1, 600)
                if short
                else rng.randint(650, 1000),
                true_output_tokens=1 + int(rng.expovariate(1 / MEAN_OUTPUT_TOKENS)),
                asked_output_tokens=rng.choice((32, 64, 96)) if short else rng.choice((64, 96)),
                intent=Intent.INTERACTIVE,
            )
        )
        at += rng.expovariate(rate)
    return requests


def virtual_log(traffic: list[TracedRequest], clients: ClientModel = ClientModel.NONE) -> list[bytes]:
    """Return the decision log of two such replicas before that traffic."""
    parameters = ReplicaParameters(
        version="3.0.1",
        kv_tokens=12_000,
        max_batch_prefill_tokens=8192,
        step_times=StepTimes(0.0075, 0.000_2, 0.000_75, 0.0375, seconds_per_sequence=0.000_03),
    )
    config = load_config(config_text(("http://10.0.0.7:8080", "http://10.0.0.8:8080")), "llmshed.toml", {}, {}).config
    setting = setting_from(config, {}, parameters, {"main": 2})
    gate = LoggingGate(build_controller(setting))
    simulate(setting, gate, iter(traffic), clients, random.Random(5), RunPlan((100, 200, 300)))  # noqa: S311 - jitter
    return gate.lines
