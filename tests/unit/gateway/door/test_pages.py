"""Which web pages may send work to a data listener without keys: none but this machine's own."""

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from llmshed.admission.reasons import Reason
from llmshed.config.server import ServerSettings
from llmshed.engines.base import BodyError
from llmshed.gateway.door.pages import refuse_pages_of_elsewhere


def headers(*fields: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(fields))


@pytest.mark.parametrize(
    "fields",
    [
        (),
        (("Host", "llm.example"),),
        (("Origin", "http://localhost:3000"),),
        (("Origin", "http://app.localhost"), ("Sec-Fetch-Site", "same-site")),
        (("Origin", "http://127.0.0.1:8080"), ("Sec-Fetch-Site", "same-origin")),
        (("Origin", "http://[::1]:8080"),),
        (("Sec-Fetch-Site", "none"),),
    ],
)
def test_programs_and_pages_of_this_machine_send_work(fields: tuple[tuple[str, str], ...]) -> None:
    refuse_pages_of_elsewhere(headers(*fields), ServerSettings())


@pytest.mark.parametrize(
    ("fields", "blamed"),
    [
        ((("Host", "rebound.example"), ("Origin", "http://rebound.example:8080")), "Origin"),
        ((("Origin", "http://127.0.0.1.example"),), "Origin"),
        ((("Origin", "http://10.0.0.1"),), "Origin"),
        ((("Origin", "null"),), "Origin"),
        ((("Origin", ""),), "Origin"),
        ((("Origin", "file://"),), "Origin"),
        ((("Origin", "http://[::1"),), "Origin"),
        ((("Origin", "http://localhost"), ("Origin", "https://page.example")), "Origin"),
        ((("Sec-Fetch-Site", "cross-site"),), "Sec-Fetch-Site"),
    ],
)
def test_a_page_of_elsewhere_is_refused_unless_strangers_may_come(
    fields: tuple[tuple[str, str], ...], blamed: str
) -> None:
    with pytest.raises(BodyError, match=r"server\.allow_keyless") as caught:
        refuse_pages_of_elsewhere(headers(*fields), ServerSettings())
    assert (caught.value.reason, caught.value.param) == (Reason.FORBIDDEN, blamed)
    refuse_pages_of_elsewhere(headers(*fields), ServerSettings(allow_keyless=True))
