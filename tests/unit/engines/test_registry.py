"""Engines by name."""

import pytest

from llmshed.engines.registry import engine
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


def test_a_version_that_is_none_is_an_error_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match="newest"):
        engine("tgi", "newest")
