"""What is known of each version of TGI."""

import pytest

from llmshed.engines.tgi.engine import TgiEngine
from llmshed.engines.tgi.versions import VERSION_TABLE, check_version, facts_of, release_of
from llmshed.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("3.3.6", (3, 3, 6)),
        ("3.3.6-dev0", (3, 3, 6)),
        ("v2.4.1", (2, 4, 1)),
        ("2.4", (2, 4, 0)),
        ("2.4.1-neuron", (2, 4, 1)),
        ("10.20.30", (10, 20, 30)),
        ("", None),
        ("3", None),
        ("3.", None),
        ("latest", None),
        ("sha-3.3.6", None),
        ("3.3.6.1", None),
        ("3.99999", None),
    ],
)
def test_a_version_is_read_as_three_numbers(text: str, release: tuple[int, int, int] | None) -> None:
    assert release_of(text) == release


@pytest.mark.parametrize(
    ("version", "default_output_tokens", "overrun_chunk_tokens"),
    [
        ("1.4.5", 100, 0),
        ("2.0.2", 100, 0),
        ("2.4.0", 100, 0),
        ("2.4.1", 100, 0),
        ("3.0.0", None, 0),
        ("3.1.0", None, 0),
        ("3.1.1", None, 1024),
        ("3.3.5", None, 1024),
        ("3.3.6-dev0", None, 1024),
        ("3.3.7", None, 1024),
        ("4.0.0", None, 1024),
    ],
)
def test_defaults_and_overrun_are_those_of_the_version(
    version: str, default_output_tokens: int | None, overrun_chunk_tokens: int
) -> None:
    assert facts_of(version).default_output_tokens == default_output_tokens
    assert TgiEngine("1.4.0").overrun_chunk_tokens(version) == overrun_chunk_tokens


@pytest.mark.parametrize(
    ("version", "needs_model", "takes_prompt_lists", "sends_done"),
    [
        ("1.3.4", True, False, False),
        ("1.4.5", True, False, False),
        ("2.0.2", True, True, False),
        ("2.1.1", True, True, False),
        ("2.2.0", False, True, True),
        ("3.3.7", False, True, True),
    ],
)
def test_forms_are_those_of_the_version(
    version: str,
    needs_model: bool,  # noqa: FBT001 - a row of the table above
    takes_prompt_lists: bool,  # noqa: FBT001 - as above
    sends_done: bool,  # noqa: FBT001 - as above
) -> None:
    facts = facts_of(version)
    assert facts.needs_model is needs_model
    assert facts.takes_prompt_lists is takes_prompt_lists
    assert facts.sends_done is sends_done


def test_the_table_goes_from_old_to_new() -> None:
    releases = [row.since for row in VERSION_TABLE]
    assert releases == sorted(set(releases))


def test_an_unreadable_version_is_taken_for_the_one_that_may_overrun() -> None:
    assert facts_of("unheard of") == VERSION_TABLE[-1]
    assert TgiEngine().overrun_chunk_tokens("auto") == 1024


@pytest.mark.parametrize("version", ["3,3,5", "latest", "", "three"])
def test_a_version_that_an_operator_mistyped_is_told_what_is_accepted(version: str) -> None:
    with pytest.raises(ConfigError, match=r'accepted: one like "3\.3\.5", or "auto"'):
        check_version(version)
