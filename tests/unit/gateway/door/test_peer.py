import pytest

from llmshed.gateway.door.peer import is_loopback_peer


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
