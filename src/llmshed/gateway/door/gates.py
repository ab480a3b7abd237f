"""What is refused before a byte of the body is read: by the headers' bounds, the framing, length, encoding, type."""

from aiohttp import web
from multidict import CIMultiDictProxy

from llmshed.admission.reasons import Reason
from llmshed.config.server import ServerSettings
from llmshed.engines.base import BodyError

_JSON_CHARSETS = {"utf-8", "utf8", "us-ascii"}


def check_headers(request: web.BaseRequest, settings: ServerSettings) -> None:
    """Hold the number and the bytes of the headers to the settings.

    Raises:
        BodyError: `headers_too_large`, with the bound that is passed.
    """
    if len(request.raw_headers) > settings.max_headers:
        raise BodyError(
            Reason.HEADERS_TOO_LARGE, f"The request has more than the {settings.max_headers} headers that are accepted."
        )
    # Four bytes a line for ": " and CR LF, as they stood on the wire.
    sizes = [len(name) + len(value) + 4 for name, value in request.raw_headers]
    target_bytes = len(request.raw_path)
    most_line_bytes = settings.max_header_bytes // 2
    if max(sizes, default=0) > most_line_bytes or target_bytes > most_line_bytes:
        raise BodyError(
            Reason.HEADERS_TOO_LARGE,
            f"The request line or a header is longer than the {most_line_bytes} bytes that are accepted.",
        )
    if sum(sizes) + target_bytes > settings.max_header_bytes:
        raise BodyError(
            Reason.HEADERS_TOO_LARGE,
            f"The headers are longer than the {settings.max_header_bytes} bytes that are accepted together.",
        )


def check_framing(request: web.BaseRequest) -> None:
    """Take only a target and a transfer coding that everybody reads alike; a front may see another path or body.

    Raises:
        BodyError: `malformed`; the connection must not be used further.
    """
    target = request.raw_path
    if "#" in target or (not target.startswith("/") and "@" in target):
        raise BodyError(Reason.MALFORMED, "The request target may hold neither a fragment nor a user name.")
    codings = request.headers.getall("Transfer-Encoding", [])
    if codings and (request.version < (1, 1) or [coding.strip().lower() for coding in codings] != ["chunked"]):
        raise BodyError(
            Reason.MALFORMED, "Transfer-Encoding must be `chunked` and nothing else, in HTTP/1.1.", "Transfer-Encoding"
        )


def check_body_headers(headers: CIMultiDictProxy[str], settings: ServerSettings) -> None:
    """Hold what the headers declare of the body: its length, that it is not compressed, that it is JSON.

    Raises:
        BodyError: `body_too_large` or `content_encoding`.
    """
    length = headers.get("Content-Length", "")
    if length.isascii() and length.isdigit() and int(length) > settings.max_body_bytes:
        raise too_large(settings.max_body_bytes)
    codings = ",".join(headers.getall("Content-Encoding", [])).split(",")
    if any(coding.strip().lower() not in {"", "identity"} for coding in codings):
        raise BodyError(
            Reason.CONTENT_ENCODING,
            "The request body is compressed; send it without Content-Encoding.",
            "Content-Encoding",
        )
    declared = headers.getall("Content-Type", [])
    if len(set(declared)) != 1 or not _is_json(declared[0]):
        raise BodyError(
            Reason.CONTENT_ENCODING,
            "The request body must be declared as `Content-Type: application/json`.",
            "Content-Type",
        )


def too_large(most_bytes: int) -> BodyError:
    """Return the refusal of a body beyond the bound."""
    return BodyError(
        Reason.BODY_TOO_LARGE, f"The request body is larger than the {most_bytes:,} bytes that this endpoint accepts."
    )


def _is_json(content_type: str) -> bool:
    if content_type == "application/json":
        return True  # as nearly always; reading it takes a hundredth of a request's time
    media, *parameters = (part.strip().lower() for part in content_type.split(";"))
    kind, _, form = media.partition("/")
    charsets = {value.strip('"') for name, _, value in (p.partition("=") for p in parameters) if name == "charset"}
    return kind == "application" and (form == "json" or form.endswith("+json")) and charsets <= _JSON_CHARSETS
