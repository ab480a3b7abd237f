"""A profile on disk."""

from pathlib import Path

import pytest

from llmshed.errors import ProfileError
from llmshed.gateway.profile_file import read_profile


def test_a_shipped_profile_is_read(repository: Path) -> None:
    assert read_profile(repository / "profiles/examples/worked-example.toml").label == "worked-example@1"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"p\.toml: cannot be read: No such file"):
        read_profile(tmp_path / "p.toml")


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(b"\xff")
    with pytest.raises(ProfileError, match="not UTF-8"):
        read_profile(tmp_path / "p.toml")


def test_a_file_of_another_kind_is_not_read_to_its_end() -> None:
    with pytest.raises(ProfileError, match="larger than"):
        read_profile(Path("/dev/zero"))
