"""Variables and flags are laid over the file."""

from typing import Any

import pytest

from llmshed.config.catalogue import Catalogue
from llmshed.config.layers import Layers, read_value
from llmshed.config.settings import Config


def layers(raw: dict[str, Any] | None = None) -> Layers:
    return Layers(Catalogue(Config), raw if raw is not None else {}, {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("2.5", 2.5),
        ("true", True),
        ('["bulk"]', ["bulk"]),
        ('"quoted"', "quoted"),
        ("plain", "plain"),
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("/etc/llmshed/keys", "/etc/llmshed/keys"),
        ("", ""),
        ("1\nother = 2", "1\nother = 2"),
        ("[" * 5000, "[" * 5000),
    ],
)
def test_a_value_is_toml_where_it_can_be_and_text_elsewhere(text: str, value: object) -> None:
    assert read_value(text, only_text=False) == value


@pytest.mark.parametrize(
    ("text", "value"), [("12", "12"), ("true", "true"), ('"12"', "12"), ("1979-01-01", "1979-01-01")]
)
def test_a_setting_that_is_text_takes_numbers_as_text(text: str, value: str) -> None:
    assert read_value(text, only_text=True) == value


def test_an_index_one_beyond_the_last_adds_an_element() -> None:
    laid = layers({"pools": [{"name": "a"}]})

    laid.lay_environment(
        {
            "LLMSHED_POOLS__1__REPLICAS__0__URL": "http://h:1",
            "LLMSHED_POOLS__1__REPLICAS__0__NAME": "7",
            "LLMSHED_POOLS__0__NAME": "b",
            "LLMSHED_POOLS__0__LANES__0": "bulk",
        }
    )

    assert laid.problems == []
    assert laid.raw == {
        "pools": [{"name": "b", "lanes": ["bulk"]}, {"replicas": [{"name": "7", "url": "http://h:1"}]}],
    }


def test_elements_come_in_the_order_of_their_numbers_not_of_their_digits() -> None:
    laid = layers()

    laid.lay_environment({f"LLMSHED_TENANTS__{index}__NAME": f"t{index}" for index in range(12)})

    assert laid.problems == []
    assert [tenant["name"] for tenant in laid.raw["tenants"]] == [f"t{index}" for index in range(12)]


def test_an_index_further_on_is_a_problem() -> None:
    laid = layers({"pools": [{}]})

    laid.lay_environment({"LLMSHED_POOLS__5__NAME": "x"})

    assert laid.problems == ["env LLMSHED_POOLS__5__NAME: pools has 1, so the next index is 1"]


def test_a_whole_table_comes_before_the_settings_in_it() -> None:
    laid = layers({"log": {"level": "error", "decisions": "off"}})

    laid.lay_environment({"LLMSHED_LOG__LEVEL": "debug", "LLMSHED_LOG": '{decisions = "stdout"}'})

    assert laid.raw == {"log": {"decisions": "stdout", "level": "debug"}}
    assert laid.places["log", "decisions"] == "env LLMSHED_LOG"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LLMSHED_SERVER_LISTEN", "LLMSHED_SERVER__LISTEN"),
        ("LLMSHED_SERVER__LISEN", "LLMSHED_SERVER__LISTEN"),
        ("llmshed_server__listen", "LLMSHED_SERVER__LISTEN"),
        ("LLMSHED_POOLS__3__REPLICAS__1__UR", "LLMSHED_POOLS__3__REPLICAS__1__URL"),
        ("LLMSHED_LANES__INTERACTIVE__MAX_INPUT", "LLMSHED_LANES__INTERACTIVE__MAX_INPUT_TOKENS"),
    ],
)
def test_an_unknown_variable_is_answered_with_the_one_that_was_meant(name: str, meant: str) -> None:
    laid = layers()

    laid.lay_environment({name: "x"})

    assert laid.problems == [f"env {name}: no such setting (did you mean `{meant}`?)"]
    assert laid.raw == {}


@pytest.mark.parametrize("name", ["LLMSHED_", "LLMSHED_TYPO", "LLMSHED___", "LLMSHED_0", "LLMSHED_PORT"])
def test_an_unknown_variable_like_no_other_is_a_problem_too(name: str) -> None:
    laid = layers()

    laid.lay_environment({name: "1"})

    assert [problem.partition(" (")[0] for problem in laid.problems] == [f"env {name}: no such setting"]


def test_what_kubernetes_tells_of_services_is_passed_over_in_a_pod_only() -> None:
    links = {
        "LLMSHED_SERVICE_HOST": "10.0.0.1",
        "LLMSHED_SERVICE_PORT": "8080",
        "LLMSHED_SERVICE_PORT_HTTP": "8080",
        "LLMSHED_PORT": "tcp://10.0.0.1:8080",
        "LLMSHED_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "LLMSHED_PORT_8080_TCP_ADDR": "10.0.0.1",
        "LLMSHED_CHAT_SERVICE_HOST": "10.0.0.2",
        "LLMSHED_CHAT_PORT_80_TCP_PROTO": "tcp",
    }
    inside, outside = layers(), layers()

    inside.lay_environment({**links, "KUBERNETES_SERVICE_HOST": "10.0.0.1", "LLMSHED_TYPO": "1"})
    outside.lay_environment(links)

    assert [problem.partition(":")[0] for problem in inside.problems] == ["env LLMSHED_TYPO"]
    assert len(outside.problems) == len(links)


@pytest.mark.parametrize("path", ["", ".", "server.", "server..listen", "pools[x].name", "pools[0", "server listen"])
def test_a_flag_that_names_no_path_is_a_problem(path: str) -> None:
    laid = layers()

    laid.lay_flags({path: "1"})

    assert len(laid.problems) == 1
    assert "not the path of a setting" in laid.problems[0]


@pytest.mark.parametrize("path", ["pools[0].name", "pools.0.name"])
def test_an_index_in_a_flag_has_two_spellings(path: str) -> None:
    laid = layers({"pools": [{"name": "a"}]})

    laid.lay_flags({path: "b"})

    assert laid.raw == {"pools": [{"name": "b"}]}


def test_what_the_file_holds_in_place_of_a_table_is_left_for_validation_to_tell() -> None:
    laid = layers({"server": 5})

    laid.lay_environment({"LLMSHED_SERVER__LISTEN": "127.0.0.1:1"})

    assert laid.raw == {"server": 5}
