import pytest

from llmshed.errors import ConfigError
from llmshed.gateway.address import Address, is_loopback_peer


@pytest.mark.parametrize(
    ("text", "loopback", "url"),
    [
        ("127.0.0.1:8080", True, "http://127.0.0.1:8080"),
        ("localhost:0", True, "http://localhost:0"),
        ("127.3.2.1:1", True, "http://127.3.2.1:1"),
        ("[::1]:8080", True, "http://[::1]:8080"),
        ("0.0.0.0:8080", False, "http://127.0.0.1:8080"),
        ("[::]:65535", False, "http://[::1]:65535"),
        ("10.0.0.7:80", False, "http://10.0.0.7:80"),
        ("gate.example:80", False, "http://gate.example:80"),
    ],
)
def test_tcp_addresses(text: str, *, loopback: bool, url: str) -> None:
    address = Address.parse(text, "server.listen")
    assert (str(address), address.loopback, address.url) == (text, loopback, url)


def test_a_unix_socket_is_an_absolute_path() -> None:
    address = Address.parse("unix:/run/llmshed/admin.sock", "server.admin_listen")
    assert address.unix_path == "/run/llmshed/admin.sock"
    assert address.loopback
    assert str(address) == "unix:/run/llmshed/admin.sock"
    with pytest.raises(ConfigError, match="unix:/PATH"):
        Address.parse("unix:admin.sock", "server.admin_listen")


@pytest.mark.parametrize("text", ["", "8080", ":8080", "host", "host:", "host:65536", "host:-1", "::1:80", "h:\u0661"])
def test_what_is_no_address_is_refused_with_the_setting_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"server\.listen: .*must be HOST:PORT"):
        Address.parse(text, "server.listen")


@pytest.mark.parametrize(
    ("peer", "local"),
    [
        (("127.0.0.1", 5), True),
        (("::1", 5, 0, 0), True),
        (("::ffff:127.0.0.1", 5, 0, 0), True),
        (("::ffff:10.0.0.1", 5, 0, 0), False),
        (("10.0.0.1", 5), False),
        ("", True),
        (None, True),
    ],
)
def test_peers_of_this_machine_are_known(peer: object, *, local: bool) -> None:
    assert is_loopback_peer(peer) is local
