"""What deploy/ ships fits together: the engine's flags, the gateway's configuration, the image and the unit."""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tomli
import yaml

from llmshed.admission.settings import EngineLimits, EngineManners, replica_spec, spec_warnings
from llmshed.config.addresses import Address
from llmshed.config.server import ServerSettings
from llmshed.config.settings import Config
from llmshed.engines import registry
from llmshed.engines.tgi.versions import VERSION_TABLE, release_of
from llmshed.gateway.config_file import read_config
from llmshed.gateway.daemon.lifecycle import LAST_SECONDS

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
TGI_PORT = 80
"""The port that TGI's image listens on."""


@dataclass(frozen=True, slots=True)
class Stack:
    """The two services and the gateway's configuration, read once and compared in many ways."""

    services: dict[str, Any]
    config: Config

    @property
    def tgi(self) -> dict[str, Any]:
        return dict(self.services["tgi"])

    @property
    def gateway(self) -> dict[str, Any]:
        return dict(self.services["llmshed"])

    @property
    def flags(self) -> dict[str, str]:
        """Return the launcher's flags with their values."""
        return dict(flag.removeprefix("--").split("=", 1) for flag in self.tgi["command"])

    @property
    def limits(self) -> EngineLimits:
        """Return what TGI will tell of itself."""
        names = ("max-concurrent-requests", "max-input-tokens", "max-total-tokens")
        return EngineLimits(*(int(self.flags[name]) for name in names))


def shipped() -> Stack:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    return Stack(services, read_config(DEPLOY / "llmshed.compose.toml", {}, {}).config)


def seconds(text: str) -> float:
    """Read a duration as compose writes it."""
    match = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", text)
    assert match
    return 60.0 * int(match[1] or 0) + int(match[2] or 0)


def the_image_is_pinned_to_a_release(stack: Stack) -> bool:
    name, _, tag = str(stack.tgi["image"]).rpartition(":")
    release = release_of(tag)
    known = release is not None and release >= VERSION_TABLE[-1].since
    return (
        name == "ghcr.io/huggingface/text-generation-inference"
        and re.fullmatch(r"\d+\.\d+\.\d+", tag) is not None
        and known
    )


def the_gateway_asks_tgi_where_it_listens(stack: Stack) -> bool:
    urls = [replica.url for pool in stack.config.pools for replica in pool.replicas]
    port = stack.flags.get("port", TGI_PORT)
    return urls == [f"http://{name}:{port}" for name in stack.services if name != "llmshed"]


def nothing_passes_the_gateway_by(stack: Stack) -> bool:
    shared = set(stack.tgi["networks"]) & set(stack.gateway["networks"])
    return "ports" not in stack.tgi and shared == set(stack.tgi["networks"])


def tgi_asks_for_no_key(stack: Stack) -> bool:
    return "api-key" not in stack.flags and "API_KEY" not in stack.tgi["environment"]


def tgi_keeps_permits_for_what_it_frees_late(stack: Stack) -> bool:
    (pool,) = stack.config.pools
    permits = int(stack.flags["max-concurrent-requests"])
    return pool.max_concurrent_sequences is not None and pool.max_concurrent_sequences < permits


def the_context_leaves_room_for_output(stack: Stack) -> bool:
    least = stack.config.lanes.interactive.max_output_tokens
    return int(stack.flags["max-input-tokens"]) + least <= int(stack.flags["max-total-tokens"])


def the_lane_of_short_turns_fits_the_context(stack: Stack) -> bool:
    return stack.config.lanes.interactive.max_input_tokens <= int(stack.flags["max-input-tokens"])


def tgi_takes_every_body_that_the_gateway_takes(stack: Stack) -> bool:
    return int(stack.flags["payload-limit"]) > stack.config.server.max_body_bytes


def the_published_port_is_the_gateways(stack: Stack) -> bool:
    listen = Address.parse(stack.config.server.listen)
    return [port.rsplit(":", 1)[1] for port in stack.gateway["ports"]] == [str(listen.port)]


def without_keys_only_the_host_itself_reaches_it(stack: Stack) -> bool:
    return bool(stack.config.tenants) or all(port.startswith("127.0.0.1:") for port in stack.gateway["ports"])


def the_container_outlives_the_drain(stack: Stack) -> bool:
    return seconds(stack.gateway["stop_grace_period"]) > stack.config.server.drain_window_seconds + LAST_SECONDS


def the_gateways_root_is_read_only_and_it_may_do_nothing_else(stack: Stack) -> bool:
    read_only, dropped, options = (stack.gateway[name] for name in ("read_only", "cap_drop", "security_opt"))
    return read_only is True and list(dropped) == ["ALL"] and "no-new-privileges:true" in list(options)


def the_configuration_is_mounted_where_it_is_named(stack: Stack) -> bool:
    (source, target, mode) = stack.gateway["volumes"][0].split(":")
    *_, named = map(str, stack.gateway["command"])
    return (DEPLOY / source).resolve() == DEPLOY and named == f"{target}/llmshed.compose.toml" and mode == "ro"


RULES: tuple[Callable[[Stack], bool], ...] = (
    the_image_is_pinned_to_a_release,
    the_gateway_asks_tgi_where_it_listens,
    nothing_passes_the_gateway_by,
    tgi_asks_for_no_key,
    tgi_keeps_permits_for_what_it_frees_late,
    the_context_leaves_room_for_output,
    the_lane_of_short_turns_fits_the_context,
    tgi_takes_every_body_that_the_gateway_takes,
    the_published_port_is_the_gateways,
    without_keys_only_the_host_itself_reaches_it,
    the_container_outlives_the_drain,
    the_gateways_root_is_read_only_and_it_may_do_nothing_else,
    the_configuration_is_mounted_where_it_is_named,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_compose_file_and_the_configuration_agree(rule: Callable[[Stack], bool]) -> None:
    assert rule(shipped())


def test_a_request_of_full_context_fits_and_no_hard_cap_is_warned_of() -> None:
    stack = shipped()
    (pool,) = stack.config.pools
    version = str(stack.tgi["image"]).rpartition(":")[2]
    overrun = registry.engine("tgi", version).overrun_chunk_tokens(version)
    spec = replica_spec(stack.config, pool, "tgi", stack.limits, EngineManners(overrun), None)

    assert spec.budget.safe_budget_tokens >= spec.limits.max_total_tokens == stack.limits.max_total_tokens
    assert [warning for warning in spec_warnings(spec, stack.limits, None) if "hard cap" in warning] == []


def engine(*flags: str, **fields: object) -> dict[str, Any]:
    """Return the changes that give TGI more flags, or other fields."""
    return {"service": "tgi", "flags": flags, "fields": fields}


def gateway(**fields: object) -> dict[str, Any]:
    return {"service": "llmshed", "flags": (), "fields": fields}


SAME = gateway()
LATEST = "ghcr.io/huggingface/text-generation-inference:latest"
FAULTS: list[tuple[Callable[[Stack], bool], dict[str, Any], dict[str, str]]] = [
    (the_image_is_pinned_to_a_release, engine(image=LATEST), {}),
    (the_gateway_asks_tgi_where_it_listens, engine("--port=8000"), {}),
    (nothing_passes_the_gateway_by, engine(ports=["8081:80"]), {}),
    (nothing_passes_the_gateway_by, gateway(networks=["front"]), {}),
    (tgi_asks_for_no_key, engine("--api-key=x"), {}),
    (tgi_keeps_permits_for_what_it_frees_late, SAME, {"pools[0].max_concurrent_sequences": "80"}),
    (the_context_leaves_room_for_output, engine("--max-input-tokens=16383"), {}),
    (the_lane_of_short_turns_fits_the_context, engine("--max-input-tokens=2048"), {}),
    (tgi_takes_every_body_that_the_gateway_takes, SAME, {"server.max_body_bytes": "4000000"}),
    (the_published_port_is_the_gateways, SAME, {"server.listen": "0.0.0.0:8081"}),
    (without_keys_only_the_host_itself_reaches_it, gateway(ports=["8080:8080"]), {}),
    (the_container_outlives_the_drain, SAME, {"server.drain_window_seconds": "600"}),
    (the_gateways_root_is_read_only_and_it_may_do_nothing_else, gateway(read_only=False), {}),
    (the_configuration_is_mounted_where_it_is_named, gateway(volumes=[".:/config:ro"]), {}),
]


@pytest.mark.parametrize(("rule", "change", "overrides"), FAULTS, ids=[fault[0].__name__ for fault in FAULTS])
def test_each_rule_finds_its_fault(
    rule: Callable[[Stack], bool], change: dict[str, Any], overrides: dict[str, str]
) -> None:
    services = copy.deepcopy(shipped().services)
    service = services[change["service"]]
    service["command"] += change["flags"]
    service.update(change["fields"])
    broken = Stack(services, read_config(DEPLOY / "llmshed.compose.toml", {}, overrides).config)
    assert not rule(broken)


def test_every_rule_is_shown_a_fault() -> None:
    assert {fault[0] for fault in FAULTS} == set(RULES)


def test_the_image_holds_everything_that_the_package_is_built_from() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    folders = {path.split("/")[0] for path in project["tool"]["setuptools"]["package-dir"].values()}
    files = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    copied = {
        source.rstrip("/")
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile(), flags=re.MULTILINE)
        for source in line.split()
    }
    admitted = re.findall(r"^!(\S+)$", (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8"), flags=re.MULTILINE)

    assert copied == folders | files
    assert set(admitted) == copied
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_runs_as_an_ordinary_user_and_asks_the_admin_listener_for_its_health() -> None:
    users = re.findall(r"^USER (\S+)$", dockerfile(), flags=re.MULTILINE)
    assert users
    assert not {"root", "0"} & set(users)
    assert f"http://{ServerSettings().admin_listen}/readyz" in dockerfile()


def test_the_unit_outlives_the_drain() -> None:
    unit = (DEPLOY / "llmshed.service").read_text("utf-8")
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, flags=re.MULTILINE)
    assert int(stop) > ServerSettings().drain_window_seconds + LAST_SECONDS


def dockerfile() -> str:
    return (DEPLOY / "Dockerfile").read_text("utf-8")
