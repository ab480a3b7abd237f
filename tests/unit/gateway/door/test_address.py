import pytest

from llmshed.config.addresses import Address
from llmshed.gateway.door.address import address_text, base_url, is_loopback_peer


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
    assert address_text(address) == text
    assert base_url(address, 9) == url


def test_a_unix_socket_is_told_by_its_path() -> None:
    assert address_text(Address.parse("unix:/run/llmshed/admin.sock")) == "unix:/run/llmshed/admin.sock"


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
