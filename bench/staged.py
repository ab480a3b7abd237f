"""Stages of benches that play made-up or recorded traffic before shipped replicas, with the shipped defaults."""

from dataclasses import replace
from functools import cache

from goodput_cases import ROOT

from llmshed.config.loading import load_config
from llmshed.profile import Profile
from llmshed.profile.parsing import parse_profile
from llmshed.profile.sections import Bulk
from llmshed.simulation.building import Parameters
from llmshed.simulation.hardware.parsing import parse_replica
from llmshed.whatif.monitors.watched import WatchedGate
from llmshed.whatif.setting import Setting
from llmshed.whatif.staging import build_controller, setting_from

SHARED = """
[[pools]]
replicas = [{ name = "a", url = "simulated:" }]
"""
"""The shipped defaults: one pool for both lanes; its replicas are replaced by simulated ones."""


def shipped_stage(replica: str, copies: int, text: str = SHARED, engine: Parameters | None = None) -> Setting:
    """Return the stage of a configuration before copies of a shipped replica; the gateway's own time is not charged.

    Args:
        replica: name of a file of `profiles/replicas`, and of its profile in `bench/profiles`.
        copies: replicas of each pool.
        text: the configuration.
        engine: another engine on the same GPU, under the same profile; None for the one of the file.
    """
    parameters, profile = _replica(replica)
    config = load_config(text, "bench", {}, {}).config
    profiles = {pool.name: profile for pool in config.pools}
    setting = setting_from(config, profiles, engine or parameters, {pool.name: copies for pool in config.pools})
    return replace(
        setting,
        gateway_seconds_per_request=0.0,
        gateway_seconds_per_input_token=0.0,
        gateway_seconds_per_output_token=0.0,
    )


def watched_controller(setting: Setting) -> WatchedGate:
    """Return the daemon's controller under all monitors, with all replicas of the setting up."""
    return WatchedGate(build_controller(setting), setting.policy, setting.specs)


@cache
def _replica(name: str) -> tuple[Parameters, Profile]:
    replica = ROOT / "profiles" / "replicas" / f"{name}.toml"
    profile = ROOT / "bench" / "profiles" / f"{name}.toml"
    parameters = parse_replica(replica.read_text("utf-8"), replica.name).parameters
    found = parse_profile(profile.read_text("utf-8"), profile.name)
    return parameters, found.model_copy(update={"bulk": Bulk()})  # as shipped: the stated cap is the goodput bench's
