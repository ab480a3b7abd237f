"""The forms of addresses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from llmshed.config.addresses import Address, AdminListen, Listen, ReplicaUrl

listen: TypeAdapter[str] = TypeAdapter(Listen)
admin: TypeAdapter[str] = TypeAdapter(AdminListen)
replica: TypeAdapter[str] = TypeAdapter(ReplicaUrl)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("0.0.0.0:0", Address("0.0.0.0", 0)),
        ("localhost:65535", Address("localhost", 65535)),
        ("[::1]:80", Address("::1", 80)),
        ("gate-way.example_1.org:80", Address("gate-way.example_1.org", 80)),
        (f"unix:/{'a' * 106}", Address(unix_path=f"/{'a' * 106}")),
        ("unix:/run/llmshed/admin.sock", Address(unix_path="/run/llmshed/admin.sock")),
    ],
)
def test_listen_addresses(text: str, address: Address) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1", "h:8 0",
        "h:\u0661", "::1:80", "[::1]", "[::1:80", "[127.0.0.1]:80", "256.0.0.1:80", "1.2.3:80", "a b:80", "a..b:80",
        "http://h:80", "h\n:80", "unix:", "unix:relative", "unix:/a\0b", "unix:/run/", "[]:80", f"{'a' * 64}:80",
        f"unix:/{'a' * 107}", f"unix:/{'é' * 54}",
    ],
)  # fmt: skip
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Address.parse(text)


@pytest.mark.parametrize("text", ["127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1", "unix:/x"])
def test_addresses_that_only_this_machine_reaches(text: str) -> None:
    assert Address.parse(text).loopback


@pytest.mark.parametrize(
    "text", ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.org:1", "128.0.0.1:1", "localhost.org:1"]
)
def test_addresses_that_others_reach(text: str) -> None:
    assert not Address.parse(text).loopback


def test_only_the_admin_listener_may_be_a_unix_socket() -> None:
    assert admin.validate_python("unix:/x") == "unix:/x"
    with pytest.raises(ValidationError, match="TCP"):
        listen.validate_python("unix:/x")


@pytest.mark.parametrize(
    "url", ["simulated:", "http://h", "http://10.0.0.1:3000", "https://tgi.example.org:443", "http://[::1]:80"]
)
def test_replica_urls(url: str) -> None:
    assert replica.validate_python(url) == url


def test_a_slash_at_the_end_of_a_url_goes() -> None:
    assert replica.validate_python("http://h:1/") == "http://h:1"


@pytest.mark.parametrize(
    "url",
    [
        "", "h:1", "//h:1", "ftp://h", "simulated", "simulated:x", "SIMULATED:", "http://", "http://:80", "http://h:",
        "http://h:0", "http://h:65536", "http://h:x", "http://u@h", "http://u:p@h", "http://@h", "http://h/path",
        "http://h?q", "http://h/?", "http://h#f", "http://h h", "http://h\n", "http://h\t1", "http://\u0433",
        "http://169.254.169.254", "http://169.254.0.1:80", "http://[fe80::1]:80", "http://[fe80::1%25eth0]:80",
        "http://[::ffff:169.254.169.254]", "http://[::1", "http://a..b", "file:///etc/passwd",
    ],
)  # fmt: skip
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        replica.validate_python(url)


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    for adapter in (listen, admin, replica):
        try:
            adapter.validate_python(text)
        except ValidationError as error:
            reasons: list[Any] = error.errors()
            assert reasons


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:9"),
        ("localhost:0", "http://localhost:9"),
        ("[::1]:8080", "http://[::1]:9"),
        ("0.0.0.0:8080", "http://127.0.0.1:9"),
        ("[::]:65535", "http://[::1]:9"),
    ],
)
def test_a_listener_is_told_as_it_was_written_and_as_it_is_reached(text: str, url: str) -> None:
    address = Address.parse(text)
    assert str(address) == text
    assert address.local_url(9) == url


def test_a_unix_socket_is_told_by_its_path() -> None:
    assert str(Address.parse("unix:/run/llmshed/admin.sock")) == "unix:/run/llmshed/admin.sock"
