"""The framing of an engine's answer: what makes its length ambiguous, and which of its headers go further."""

from multidict import CIMultiDict, MultiMapping

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of one hop (RFC 9110, 7.6.1 and 7.6.2); those that `Connection` names are dropped too."""


def framing_fault(headers: MultiMapping[str]) -> str | None:
    """Return what makes the length of an answer ambiguous, for which some parsers choose one of two readings."""
    lengths = headers.getall("Content-Length", [])
    codings = headers.getall("Transfer-Encoding", [])
    if len(lengths) > 1:
        return "has two lengths"
    if lengths and codings:
        return "has both a length and a transfer coding"
    if codings and [coding.strip().lower() for coding in codings] != ["chunked"]:
        return "has a transfer coding other than chunked"
    return None


def end_to_end(headers: MultiMapping[str]) -> CIMultiDict[str]:
    """Return the headers that are not about the connection; a repeated one keeps all its values."""
    dropped = _HOP_BY_HOP
    if lines := headers.getall("Connection", []):
        dropped = _HOP_BY_HOP | {name.strip().lower() for line in lines for name in line.split(",")}
    return CIMultiDict([(name, value) for name, value in headers.items() if name.lower() not in dropped])
