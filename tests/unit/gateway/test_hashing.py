from pathlib import Path

import pytest

from llmshed.errors import ConfigError
from llmshed.gateway.hashing import Hasher, read_hasher


def test_a_session_has_one_name_for_its_tenant_and_key() -> None:
    hasher = Hasher(b"secret")
    name = hasher.session("acme", "conversation")
    assert name == Hasher(b"secret").session("acme", "conversation")
    others = {
        hasher.session("acme", "conversation "),
        hasher.session("other", "conversation"),
        hasher.session("acm", "econversation"),
        Hasher(b"Secret").session("acme", "conversation"),
    }
    assert name not in others
    assert len(others) == 4
    assert "conversation" not in name


def test_a_session_of_any_bytes_has_a_name() -> None:
    assert len(Hasher(b"k").session("acme", "\udcff\u2028")) == 24


def test_a_request_has_one_name_for_its_tenant_route_body_and_key_however_it_was_written() -> None:
    hasher = Hasher(b"secret")
    name = hasher.body("acme", "/generate", {"inputs": "sing", "parameters": {"seed": 7, "max_new_tokens": 4}})
    assert name == Hasher(b"secret").body(
        "acme", "/generate", {"parameters": {"max_new_tokens": 4, "seed": 7}, "inputs": "sing"}
    )
    body = {"inputs": "sing", "parameters": {"seed": 7}}
    names = {
        name,
        hasher.body("acme", "/generate", body),
        hasher.body("other", "/generate", body),
        hasher.body("acme", "/generate_stream", body),
        hasher.body("acme", "/generate", {**body, "inputs": "sing "}),
        Hasher(b"Secret").body("acme", "/generate", body),
    }
    assert len(names) == 6
    assert {len(name) for name in names} == {24}
    assert "sing" not in name


def test_the_working_key_is_never_the_secret_itself() -> None:
    assert len(Hasher(b"short").key) == 32
    assert b"short" not in Hasher(b"short").key


def test_without_a_file_each_process_has_a_key_of_its_own(tmp_path: Path) -> None:
    assert read_hasher(None).key != read_hasher(None).key
    path = tmp_path / "key"
    path.write_bytes(b"secret\n")
    path.chmod(0o600)
    assert read_hasher(path).key == Hasher(b"secret").key


def test_an_empty_or_missing_key_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b" \n")
    (tmp_path / "empty").chmod(0o600)
    with pytest.raises(ConfigError, match=r"log\.hash_key_file: .*is empty"):
        read_hasher(tmp_path / "empty")
    with pytest.raises(ConfigError, match=r"log\.hash_key_file: .*cannot be read: No such file"):
        read_hasher(tmp_path / "absent")


def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").write_bytes(b"secret")
    (tmp_path / "open").chmod(0o644)
    with pytest.raises(ConfigError, match=r"log\.hash_key_file: .*mode 0644 lets others read the file"):
        read_hasher(tmp_path / "open")
