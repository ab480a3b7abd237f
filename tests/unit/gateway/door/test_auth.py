import hashlib
import hmac
from pathlib import Path

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from llmshed.admission.settings import ANONYMOUS
from llmshed.config.pools import PoolSettings, ReplicaSettings
from llmshed.config.settings import Config
from llmshed.config.tenants import TenantSettings
from llmshed.errors import ConfigError
from llmshed.gateway.door.auth import (
    AdminAccess,
    KeyRing,
    presented_key,
    read_admin_access,
    read_digests,
    read_key_ring,
)


def digest_line(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def secret_file(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def headers(*pairs: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(pairs))


def config(*tenants: TenantSettings) -> Config:
    return Config(tenants=tenants, pools=(PoolSettings(replicas=(ReplicaSettings(name="r", url="simulated:"),)),))


def test_without_keys_everyone_is_the_anonymous_tenant() -> None:
    assert KeyRing().tenant(None) == ANONYMOUS
    assert not KeyRing().asks_for_keys


def test_with_keys_only_a_known_key_has_a_tenant() -> None:
    ring = KeyRing({hashlib.sha256(b"right").digest(): "search"})
    assert ring.tenant("right") == "search"
    for wrong in (None, "", "Right", "right ", "right\udcff", "x" * 10_000):
        assert ring.tenant(wrong) is None


def test_every_key_costs_one_digest_and_one_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = KeyRing({hashlib.sha256(key.encode()).digest(): "search" for key in ("right", "other")})
    done: list[str] = []
    digest, compare = hashlib.sha256, hmac.compare_digest

    def digesting(data: bytes) -> "hashlib._Hash":
        done.append("digest")
        return digest(data)

    def comparing(one: bytes, two: bytes) -> bool:
        done.append("compare")
        return compare(one, two)

    monkeypatch.setattr(hashlib, "sha256", digesting)
    monkeypatch.setattr(hmac, "compare_digest", comparing)
    for key in ("right", "righs", "sight", "", "unknown" * 100):
        ring.tenant(key)
        assert done == ["digest", "compare"]
        done.clear()


def test_a_key_that_is_not_utf8_is_compared_as_the_bytes_that_were_sent() -> None:
    ring = KeyRing({hashlib.sha256(b"\xff\xfe").digest(): "search"})
    assert ring.tenant(b"\xff\xfe".decode("utf-8", "surrogateescape")) == "search"


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ((("Authorization", "Bearer k1"),), "k1"),
        ((("authorization", "bearer   k1 "),), "k1"),
        ((("X-API-Key", "k2"),), "k2"),
        ((("Authorization", "Bearer k1"), ("x-api-key", "k2")), "k1"),
        ((("Authorization", "Basic azE6"), ("x-api-key", "k2")), None),
        ((("Authorization", "Bearer"),), None),
        ((("Authorization", "Bearer k1"), ("Authorization", "Bearer k2")), None),
        ((("x-api-key", "k1"), ("x-api-key", "k1")), None),
        ((), None),
    ],
)
def test_a_key_is_presented_in_exactly_one_way(sent: tuple[tuple[str, str], ...], key: str | None) -> None:
    assert presented_key(headers(*sent)) == key


def test_key_files_take_comments_and_both_cases_of_hex(tmp_path: Path) -> None:
    upper = digest_line("b").replace("sha256:", "").upper()
    text = f"# made 2026-11-01\n\n{digest_line('a')}  # laptop\nsha256:{upper}\n"
    digests = read_digests(secret_file(tmp_path / "keys", text), "tenants[0].keys_file")
    assert digests == (hashlib.sha256(b"a").digest(), hashlib.sha256(b"b").digest())


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o660, 0o601])
def test_a_key_file_that_others_may_touch_is_refused_by_name(tmp_path: Path, mode: int) -> None:
    path = secret_file(tmp_path / "keys", digest_line("a"), mode)
    with pytest.raises(ConfigError, match=f"tenants\\[0\\].keys_file: {path}: mode {mode:04o}"):
        read_digests(path, "tenants[0].keys_file")


def test_systemd_credentials_may_show_a_group_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = secret_file(tmp_path / "keys", digest_line("a"), 0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert len(read_digests(path, "s")) == 1
    path.chmod(0o444)
    with pytest.raises(ConfigError, match="lets others read"):
        read_digests(path, "s")


@pytest.mark.parametrize("line", ["my-secret-key", "sha256:abc", "sha1:" + "0" * 40, "sha256:" + "g" * 64])
def test_a_bad_line_is_named_by_number_and_never_shown(tmp_path: Path, line: str) -> None:
    path = secret_file(tmp_path / "keys", f"# ours\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        read_digests(path, "s")
    assert f"{path}:2:" in str(caught.value)
    assert line not in str(caught.value)


def test_an_empty_or_missing_key_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no digest line"):
        read_digests(secret_file(tmp_path / "keys", "# none yet\n"), "s")
    with pytest.raises(ConfigError, match="No such file"):
        read_digests(tmp_path / "absent", "s")


def test_all_mistakes_in_key_files_are_told_at_once(tmp_path: Path) -> None:
    shared = secret_file(tmp_path / "a", digest_line("same"))
    other = secret_file(tmp_path / "b", digest_line("same"))
    tenants = (
        TenantSettings(name="one", keys_file=str(shared)),
        TenantSettings(name="two", keys_file=str(other)),
        TenantSettings(name="three", keys_file=str(tmp_path / "absent")),
    )
    with pytest.raises(ConfigError) as caught:
        read_key_ring(config(*tenants))
    shares, absent = caught.value.problems
    assert "tenant two shares a key with tenant one" in shares
    assert absent.startswith("tenants[2].keys_file:")


def test_a_tenant_may_have_several_keys(tmp_path: Path) -> None:
    path = secret_file(tmp_path / "keys", f"{digest_line('new')}\n{digest_line('old')}\n")
    ring = read_key_ring(config(TenantSettings(name="one", keys_file=str(path))))
    assert (ring.tenant("new"), ring.tenant("old"), ring.tenant("other")) == ("one", "one", None)


def test_the_admin_listener_is_open_until_it_has_a_token(tmp_path: Path) -> None:
    assert read_admin_access(config()).allows(None)
    guarded = AdminAccess(read_digests(secret_file(tmp_path / "token", digest_line("t")), "server.admin_token_file"))
    assert guarded.allows("t")
    assert not guarded.allows(None)
    assert not guarded.allows("T")
    assert not guarded.allows("t" * 5000)
