import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from llmshed.config.settings import Config
from llmshed.errors import ConfigError, ProfileError
from llmshed.gateway.daemon.reload import FIXED, Inputs, Reloader, with_fixed
from llmshed.gateway.door.auth import AdminAccess, KeyRing

POOLS = [{"replicas": [{"name": "r1", "url": "http://10.0.0.1:80"}]}]


def config(**tables: Any) -> Config:
    return Config.model_validate({"pools": POOLS} | tables, strict=False)


def test_settings_that_may_change_are_taken() -> None:
    old, new = config(), config(lanes={"interactive": {"max_input_tokens": 99}}, server={"max_body_bytes": 5000})
    assert with_fixed(old, new) == (new, ())


def test_what_was_opened_by_a_setting_keeps_it_and_is_named() -> None:
    old = config(server={"listen": "127.0.0.1:1"}, counting={"threads": 2}, log={"level": "info"})
    new = config(
        server={"listen": "127.0.0.1:2", "max_body_bytes": 5000}, counting={"threads": 9}, log={"level": "debug"}
    )
    taken, kept = with_fixed(old, new)
    assert kept == ("server.listen", "counting")
    assert (taken.server.listen, taken.counting.threads) == ("127.0.0.1:1", 2)
    assert (taken.server.max_body_bytes, taken.log.level) == (5000, "debug")


def test_every_fixed_setting_exists() -> None:
    for path in FIXED:
        table, _, setting = path.partition(".")
        assert table in Config.model_fields
        assert not setting or setting in type(getattr(config(), table)).model_fields


def test_keys_cannot_be_taken_away_from_an_address_that_strangers_reach() -> None:
    tenants = [{"name": "acme", "keys_file": "/keys"}]
    old = config(server={"listen": "0.0.0.0:80"}, tenants=tenants)
    with pytest.raises(ConfigError, match=r"server\.listen: kept until a restart: .*there are no tenants"):
        with_fixed(old, config())
    assert with_fixed(old, config(tenants=tenants))[1] == ("server.listen",)


class House:
    """What a reload acts on."""

    def __init__(self, read: Callable[[], Inputs]) -> None:
        self.snapshot: Any = SimpleNamespace(version="v0", config=config())
        self.taken: list[Inputs] = []
        self.refusals = 0
        self.reloader = Reloader(read, self.take, lambda: self.snapshot, self.refused)

    def take(self, inputs: Inputs) -> str:
        self.taken.append(inputs)
        self.snapshot = SimpleNamespace(version=f"v{len(self.taken)}", config=inputs.config)
        return str(self.snapshot.version)

    def refused(self) -> None:
        self.refusals += 1


def inputs(**tables: Any) -> Inputs:
    return Inputs(config(**tables), KeyRing(), AdminAccess())


async def test_a_reload_takes_what_was_read() -> None:
    house = House(lambda: inputs(server={"max_body_bytes": 5000, "listen": "127.0.0.1:9"}))
    result = await house.reloader.reload()
    assert (result.in_force, result.config_version, result.kept) == (True, "v1", ("server.listen",))
    assert house.taken[0].config.server.max_body_bytes == 5000
    assert house.refusals == 0


@pytest.mark.parametrize("error", [ConfigError(("a: b", "c: d")), ProfileError("a: b\nc: d")])
async def test_a_mistake_is_told_line_by_line_and_nothing_is_taken(error: Exception) -> None:
    def read() -> Inputs:
        raise error

    house = House(read)
    result = await house.reloader.reload()
    assert (result.in_force, result.config_version, result.problems) == (False, "v0", ("a: b", "c: d"))
    assert (house.taken, house.refusals) == ([], 1)


async def test_a_configuration_that_cannot_be_taken_is_refused() -> None:
    house = House(inputs)

    def refuse(_: Inputs) -> str:
        raise ProfileError("no such profile")

    house.reloader = Reloader(inputs, refuse, lambda: house.snapshot, house.refused)
    assert (await house.reloader.reload()).problems == ("no such profile",)
    assert house.refusals == 1


async def test_reloads_that_overlap_are_taken_one_after_the_other() -> None:
    running = 0

    def read() -> Inputs:
        nonlocal running
        running += 1
        assert running == 1
        running -= 1
        return inputs()

    house = House(read)
    results = await asyncio.gather(*(house.reloader.reload() for _ in range(5)))
    assert [result.config_version for result in results] == ["v1", "v2", "v3", "v4", "v5"]
    assert replace(results[0], config_version="v5") == results[-1]
