"""Who may ask an admin listener without a token: this machine by its own names, and no page of elsewhere."""

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from llmshed.admission.reasons import Reason
from llmshed.config.addresses import Address
from llmshed.engines.base import BodyError
from llmshed.gateway.admin.pages import refuse_pages_of_elsewhere

LOOPBACK = Address("127.0.0.1", 9901)


def headers(*fields: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(fields))


@pytest.mark.parametrize(
    "fields",
    [
        (),
        (("Host", "127.0.0.1:9901"),),
        (("Host", "127.8.9.1"),),
        (("Host", "[::1]:9901"),),
        (("Host", "localhost:1"),),
        (("Host", "LocalHost."),),
        (("Host", "gateway.localhost:9901"),),
        (("Host", "localhost"), ("Origin", "http://localhost:9901"), ("Sec-Fetch-Site", "same-origin")),
        (("Host", "localhost"), ("Sec-Fetch-Site", "none")),
    ],
)
def test_this_machine_asks_by_its_own_names(fields: tuple[tuple[str, str], ...]) -> None:
    refuse_pages_of_elsewhere(headers(*fields), LOOPBACK)


@pytest.mark.parametrize(
    ("fields", "blamed"),
    [
        ((("Host", "rebound.example"),), "Host"),
        ((("Host", "rebound.example:9901"), ("Origin", "http://rebound.example:9901")), "Host"),
        ((("Host", "127.0.0.1.example"),), "Host"),
        ((("Host", "localhost.example"),), "Host"),
        ((("Host", "notlocalhost"),), "Host"),
        ((("Host", "0.0.0.0:9901"),), "Host"),
        ((("Host", "10.0.0.1"),), "Host"),
        ((("Host", ""),), "Host"),
        ((("Host", "[::1"),), "Host"),
        ((("Host", "localhost"), ("Host", "rebound.example")), "Host"),
        ((("Host", "localhost"), ("Origin", "https://page.example")), "Origin"),
        ((("Host", "localhost"), ("Origin", "null")), "Origin"),
        ((("Host", "localhost"), ("Origin", "file://")), "Origin"),
        ((("Host", "localhost"), ("Sec-Fetch-Site", "cross-site")), "Sec-Fetch-Site"),
    ],
)
def test_a_page_of_elsewhere_is_refused(fields: tuple[tuple[str, str], ...], blamed: str) -> None:
    with pytest.raises(BodyError, match=r"server\.admin_token_file") as caught:
        refuse_pages_of_elsewhere(headers(*fields), LOOPBACK)
    assert (caught.value.reason, caught.value.param) == (Reason.FORBIDDEN, blamed)


def test_the_name_that_is_listened_on_is_known() -> None:
    refuse_pages_of_elsewhere(headers(("Host", "Ip6-LocalHost:9901")), Address("ip6-localhost", 9901))


def test_no_browser_reaches_a_unix_socket() -> None:
    refuse_pages_of_elsewhere(headers(("Host", "llmshed")), Address(unix_path="/run/llmshed.sock"))
