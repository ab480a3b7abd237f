"""What holds for every setting."""

import re
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from llmshed.config.base import Settings
from llmshed.config.catalogue import Catalogue
from llmshed.config.pools import PoolSettings, ReplicaSettings
from llmshed.config.settings import Config
from llmshed.profile import Profile

CONFIG = Config(pools=(PoolSettings(replicas=(ReplicaSettings(name="r1", url="simulated:"),)),))


def models_of(model: type[BaseModel]) -> set[type[BaseModel]]:
    found = {model}
    for info in model.model_fields.values():
        for kind in (info.annotation, *getattr(info.annotation, "__args__", ())):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found |= models_of(kind)
    return found


MODELS = sorted(models_of(Config) | models_of(Profile), key=lambda model: model.__qualname__)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__qualname__)
def test_every_table_and_setting_says_what_it_means(model: type[BaseModel]) -> None:
    assert model.__doc__
    assert model.__doc__.splitlines()[0].endswith(".")
    for name, info in model.model_fields.items():
        assert info.description, name
        assert info.description.rstrip().endswith("."), name


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__qualname__)
def test_every_table_is_frozen_and_takes_no_unknown_name(model: type[BaseModel]) -> None:
    assert issubclass(model, Settings)
    assert model.model_config.get("frozen")
    assert model.model_config.get("extra") == "forbid"
    assert model.model_config.get("strict")


def test_a_value_cannot_be_replaced() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        CONFIG.server.listen = "127.0.0.1:1"  # type: ignore[misc]  # what the test tries


CATALOGUE = Catalogue(Config)
NUMBERS = [path for path in CATALOGUE.leaves() if re.match("a (whole )?number", CATALOGUE.accepted(path))]


def test_every_number_is_bounded_on_both_sides() -> None:
    assert len(NUMBERS) > 30
    for path in NUMBERS:
        schema = CATALOGUE.find(path)
        assert schema is not None
        assert {"minimum", "exclusiveMinimum"} & set(schema), path
        assert {"maximum", "exclusiveMaximum"} & set(schema), path


@pytest.mark.parametrize("wrong", [True, "5", float("nan"), float("inf"), None, [1]])
def test_no_number_takes_what_is_none(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        type(CONFIG.server).model_validate({"keepalive_seconds": wrong})
