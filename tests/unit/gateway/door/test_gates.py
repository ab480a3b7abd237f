import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict, CIMultiDictProxy

from llmshed.admission.reasons import Reason
from llmshed.config.server import ServerSettings
from llmshed.engines.base import BodyError
from llmshed.gateway.door.gates import check_body_headers, check_headers

SETTINGS = ServerSettings(max_headers=8, max_header_bytes=1024, max_body_bytes=100)
JSON = ("Content-Type", "application/json")


def request(*pairs: tuple[str, str], path: str = "/") -> web.BaseRequest:
    return make_mocked_request("POST", path, headers=CIMultiDict(pairs))


def headers(*pairs: tuple[str, str]) -> CIMultiDictProxy[str]:
    return CIMultiDictProxy(CIMultiDict(pairs))


def test_headers_within_the_bounds_pass() -> None:
    check_headers(request(*((f"h{n}", "v" * 100) for n in range(8))), SETTINGS)


@pytest.mark.parametrize(
    ("sent", "path"),
    [
        (tuple((f"h{n}", "v") for n in range(9)), "/"),
        ((("h", "v" * 520),), "/"),
        (tuple((f"h{n}", "v" * 200) for n in range(6)), "/"),
        ((), "/" + "p" * 600),
    ],
    ids=["too many", "one too long", "too long together", "target too long"],
)
def test_headers_beyond_a_bound_are_too_large(sent: tuple[tuple[str, str], ...], path: str) -> None:
    with pytest.raises(BodyError) as caught:
        check_headers(request(*sent, path=path), SETTINGS)
    assert caught.value.reason is Reason.HEADERS_TOO_LARGE


@pytest.mark.parametrize(
    "declared",
    ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"', "application/ld+json"],
)
def test_json_may_be_declared_in_its_usual_forms(declared: str) -> None:
    check_body_headers(headers(("Content-Type", declared), ("Content-Length", "100")), SETTINGS)


@pytest.mark.parametrize(
    "sent",
    [
        (),
        (("Content-Type", "text/plain"),),
        (("Content-Type", "application/x-www-form-urlencoded"),),
        (("Content-Type", "application/json; charset=utf-16"),),
        (("Content-Type", "text/json"),),
        (JSON, ("Content-Type", "text/plain")),
        (JSON, ("Content-Encoding", "gzip")),
        (JSON, ("Content-Encoding", "identity, br")),
        (JSON, ("Content-Encoding", "identity"), ("Content-Encoding", "deflate")),
    ],
)
def test_a_body_that_is_compressed_or_not_json_is_415(sent: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(BodyError) as caught:
        check_body_headers(headers(*sent), SETTINGS)
    assert caught.value.reason is Reason.CONTENT_ENCODING


def test_identity_is_no_compression() -> None:
    check_body_headers(headers(JSON, ("Content-Encoding", "Identity")), SETTINGS)


def test_a_declared_length_beyond_the_bound_is_refused_unread() -> None:
    with pytest.raises(BodyError, match="larger than the 100 bytes") as caught:
        check_body_headers(headers(JSON, ("Content-Length", "101")), SETTINGS)
    assert caught.value.reason is Reason.BODY_TOO_LARGE
