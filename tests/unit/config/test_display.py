"""The settings in force, shown as text that is a configuration itself."""

from typing import Any

import tomli
from hypothesis import given
from hypothesis import strategies as st

from llmshed.config.catalogue import Catalogue
from llmshed.config.display import all_origins, as_toml, json_schema
from llmshed.config.loading import LoadedConfig, load_config
from llmshed.config.paths import spelled
from llmshed.config.settings import Config

TEXT = """\
[[pools]]
profile = "a\\"b\\\\c\\u001b.toml"
aliases = []
replicas = [{ name = "r1", url = "http://h:1" }, { name = "r2", url = "simulated:" }]
[[pools]]
name = "b"
lanes = ["bulk"]
aliases = ["x", "y"]
replicas = [{ name = "r3", url = "simulated:" }]
[lanes.bulk]
max_input_tokens = 5000
[[tenants]]
name = "t"
keys_file = "k"
weight = 3
"""


def load(text: str, environ: dict[str, str] | None = None) -> LoadedConfig:
    return load_config(text, "f", environ or {}, {})


def test_what_is_shown_parses_back_to_the_same_configuration() -> None:
    loaded = load(TEXT, {"LLMSHED_SERVER__KEEPALIVE_SECONDS": "1e-3"})

    for origins in (False, True):
        assert load(as_toml(loaded, origins=origins)).config == loaded.config


def test_every_setting_is_shown_even_one_that_is_unset() -> None:
    shown = as_toml(load(TEXT), origins=False)

    for path in Catalogue(Config).leaves():
        assert f"\n{path[-1]} = " in f"\n{shown}" or f"\n# {path[-1]} is unset" in shown


def test_each_line_tells_its_origin() -> None:
    lines = as_toml(load(TEXT, {"LLMSHED_LOG__LEVEL": "debug"}), origins=True).splitlines()

    assert 'level = "debug"  # env LLMSHED_LOG__LEVEL' in lines
    assert "weight = 3.0  # f:15" in lines
    assert 'listen = "127.0.0.1:8080"  # default' in lines
    assert "# hash_key_file is unset  # default" in lines
    assert all("  # " in line for line in lines if line and not line.startswith("["))


def test_origins_are_told_for_every_setting() -> None:
    origins = all_origins(load(TEXT))

    assert origins["pools[1].replicas[0].name"] == "f:9"
    assert origins["server.listen"] == "default"
    assert {spelled(path) for path in Catalogue(Config).leaves()} <= set(origins)


def test_the_schema_takes_what_the_models_take() -> None:
    schema = json_schema(Config, "llmshed.toml")

    assert schema["title"] == "llmshed.toml"
    assert schema["required"] == ["pools"]
    assert schema["properties"]["server"]["description"]


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(texts, texts, st.floats(1e-6, 1e9), st.lists(st.from_regex(r"[!-~]{1,9}", fullmatch=True), max_size=3))
def test_any_values_come_back(profile: str, keys: str, seconds: float, aliases: list[str]) -> None:
    import tomli_w  # noqa: PLC0415 - only this test writes TOML

    document: dict[str, Any] = {
        "pools": [{"profile": profile, "aliases": aliases, "replicas": [{"name": "r", "url": "simulated:"}]}],
        "tenants": [{"name": "t", "keys_file": keys}],
        "server": {"keepalive_seconds": seconds},
    }
    loaded = load(tomli_w.dumps(document))

    shown = as_toml(loaded, origins=True)

    assert load(shown).config == loaded.config
    assert tomli.loads(shown)["pools"][0]["profile"] == profile
