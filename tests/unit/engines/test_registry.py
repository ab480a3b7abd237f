"""Engines by name."""

import pytest

from llmshed.engines.registry import READABLE_ENGINES, engine, readable_engine
from llmshed.engines.tgi.engine import TgiEngine
from llmshed.errors import ConfigError


def test_tgi_is_made_for_a_version() -> None:
    made = engine("tgi", "2.4.0")
    assert isinstance(made, TgiEngine)
    assert made.name == "tgi"
    assert made.version == "2.4.0"


@pytest.mark.parametrize("name", ["", "TGI", "vllm", "tgi "])
def test_an_unknown_engine_is_told_which_are_known(name: str) -> None:
    with pytest.raises(ConfigError, match="accepted: tgi"):
        engine(name)


@pytest.mark.parametrize("name", ["vllm", "llamacpp"])
def test_an_engine_that_is_only_read_is_not_served(name: str) -> None:
    with pytest.raises(ConfigError, match=f'^engine: "{name}" can be measured, but not served; accepted: tgi$'):
        engine(name)


def test_each_readable_engine_is_made_by_its_name() -> None:
    assert READABLE_ENGINES == ("tgi", "vllm", "llamacpp")
    assert [readable_engine(name).name for name in READABLE_ENGINES] == list(READABLE_ENGINES)


def test_an_unreadable_engine_is_told_which_are_known() -> None:
    with pytest.raises(ConfigError, match=r'^engine: "sglang" is not known; accepted: tgi, vllm, llamacpp$'):
        readable_engine("sglang")


def test_a_version_that_is_none_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match="newest"):
        engine("tgi", "newest")
