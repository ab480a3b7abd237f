import pytest

from llmshed.simulation.versions import Chunking, parse_version, version_rules


@pytest.mark.parametrize(
    ("version", "default", "chunking", "chunked_prefill"),
    [
        ("1.4.5", 100, Chunking.NEVER, False),
        ("2.4.0", 100, Chunking.NEVER, False),
        ("2.4.1", 100, Chunking.NEVER, False),
        ("3.0.0", None, Chunking.WHEN_ABSENT, True),
        ("3.1.0", None, Chunking.WHEN_ABSENT, True),
        ("3.1.1", None, Chunking.ALWAYS, True),
        ("3.3.5", None, Chunking.ALWAYS, True),
        ("3.3.6-dev0", None, Chunking.ALWAYS, True),
    ],
)
def test_versions_differ_as_their_tags_do(
    version: str, default: int | None, chunking: Chunking, *, chunked_prefill: bool
) -> None:
    rules = version_rules(version)
    assert (rules.default_output_tokens, rules.chunking, rules.chunked_prefill) == (default, chunking, chunked_prefill)


def test_a_version_is_three_numbers() -> None:
    assert parse_version("v3.3.6-dev0") == (3, 3, 6)


@pytest.mark.parametrize("version", ["", "3", "3.3", "latest", "3.3.5.1", "3.3.x", "٣.3.5", "1.3.9", "4.0.0", "3.3.5 "])
def test_anything_else_is_refused_with_what_is_accepted(version: str) -> None:
    with pytest.raises(ValueError, match=r"3\.3\.5|1\.4\.0 to 3\.x"):
        parse_version(version)
