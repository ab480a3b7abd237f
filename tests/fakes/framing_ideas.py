"""Framings that the reference payloads lack, in four groups: lengths, codings, chunks with trailers, lines."""

Read = tuple[str, str, bytes]
"""Method, path and body of one request as a handler sees them."""
Idea = tuple[bytes, tuple[Read, ...], bool]
"""The payload, what is read in it, and whether its connection ends with it."""

_HELLO: tuple[Read, ...] = (("POST", "/body", b"hello"),)
_EMPTY: tuple[Read, ...] = (("POST", "/body", b""),)
_GET: tuple[Read, ...] = (("GET", "/st", b""),)


def _post(*lines: bytes, body: bytes = b"hello") -> bytes:
    return b"\r\n".join((b"POST /body HTTP/1.1", b"Host: a", *lines)) + b"\r\n\r\n" + body


def _chunked(chunks: bytes) -> bytes:
    return _post(b"Transfer-Encoding: chunked", body=chunks)


def _coded(coding: bytes) -> bytes:
    return _post(b"Transfer-Encoding: " + coding, body=b"5\r\nhello\r\n0\r\n\r\n")


def _trailed(trailers: bytes) -> bytes:
    return _chunked(b"5\r\nhello\r\n0\r\n" + trailers)


def _get(line: bytes = b"GET /st HTTP/1.1", *fields: bytes) -> bytes:
    return b"\r\n".join((line, b"Host: a", *fields)) + b"\r\n\r\n"


_REFUSED: dict[str, bytes] = {
    "length 5;": _post(b"Content-Length: 5;"),
    "length 5 6": _post(b"Content-Length: 5 6"),
    "length in quotes": _post(b'Content-Length: "5"'),
    "length in full-width digits": _post("Content-Length: \uff15".encode()),
    "length -0": _post(b"Content-Length: -0", body=b""),
    "length 2^64 + 5": _post(b"Content-Length: 18446744073709551621"),
    "length on the next line": _post(b"Content-Length:", b" 5"),
    "length twice, once in capitals": _post(b"content-length: 5", b"CONTENT-LENGTH: 5"),
    "length twice, once empty": _post(b"Content-Length: 5", b"Content-Length:"),
    "coding after another": _post(b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "coding before another": _post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity", body=b"0\r\n\r\n"),
    "coding with a weight": _coded(b"chunked;q=1"),
    "coding in quotes": _coded(b'"chunked"'),
    "coding and a comma": _coded(b"chunked,"),
    "comma and a coding": _coded(b",chunked"),
    "coding gzip, chunked": _coded(b"gzip, chunked"),
    "coding without a name": _coded(b""),
    "coding with NUL": _coded(b"chunked\x00"),
    "coding in two words": _coded(b"chun ked"),
    "coding, a tab before its colon": _post(b"Transfer-Encoding\t: chunked", body=b"0\r\n\r\n"),
    "coding folded under another field": _post(b"X-A: b", b" Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
    "chunk size and a space": _chunked(b"5 \r\nhello\r\n0\r\n\r\n"),
    "chunk size and a tab": _chunked(b"5\t\r\nhello\r\n0\r\n\r\n"),
    "space and a chunk size": _chunked(b" 5\r\nhello\r\n0\r\n\r\n"),
    "chunk size 5_0": _chunked(b"0_5\r\nhello\r\n0\r\n\r\n"),
    "chunk size in full-width digits": _chunked("\uff15\r\nhello\r\n0\r\n\r\n".encode()),
    "chunk size is nothing": _chunked(b"\r\nhello\r\n0\r\n\r\n"),
    "chunk extension over two lines": _chunked(b'5;a="\r\n"\r\nhello\r\n0\r\n\r\n'),
    "chunk extension with CR": _chunked(b"5;a\rb\r\nhello\r\n0\r\n\r\n"),
    "chunk longer than told": _chunked(b"5\r\nhello!\r\n0\r\n\r\n"),
    "chunk ends with LF": _chunked(b"5\r\nhello\n0\r\n\r\n"),
    "chunk ends with CR": _chunked(b"5\r\nhello\r0\r\n\r\n"),
    "no line behind the last chunk": _chunked(b"5\r\nhello\r\n0\r\n"),
    "LF behind the last chunk": _chunked(b"5\r\nhello\r\n0\r\n\n"),
    "trailer with a length": _trailed(b"Content-Length: 7\r\n\r\n"),
    "trailer with a coding": _trailed(b"Transfer-Encoding: identity\r\n\r\n"),
    "trailer that is folded": _trailed(b"X-T: 1\r\n 2\r\n\r\n"),
    "trailer without a colon": _trailed(b"X-T\r\n\r\n"),
    "trailer with NUL": _trailed(b"X-T: \x00\r\n\r\n"),
    "a tab in the request line": _get(b"GET\t/st HTTP/1.1"),
    "a space behind the request line": _get(b"GET /st HTTP/1.1 "),
    "a space in the target": _get(b"GET /s t HTTP/1.1"),
    "NUL in the target": _get(b"GET /st\x00 HTTP/1.1"),
    "a fragment in the target": _get(b"GET /st#x HTTP/1.1"),
    "a target without a slash": _get(b"GET st HTTP/1.1"),
    "version 1.10": _get(b"GET /st HTTP/1.10"),
    "version 01.1": _get(b"GET /st HTTP/01.1"),
    "version 1.2": _get(b"GET /st HTTP/1.2"),
    "version in small letters": _get(b"GET /st http/1.1"),
    "CR CR LF behind the request line": _get(b"GET /st HTTP/1.1\r"),
    "a space before the first field": b"GET /st HTTP/1.1\r\n Host: a\r\n\r\n",
    "a space before the colon of Host": b"GET /st HTTP/1.1\r\nHost : a\r\n\r\n",
    "Host twice alike": _get(b"GET /st HTTP/1.1", b"Host: a"),
    "a field without a colon": _get(b"GET /st HTTP/1.1", b"X-A"),
    "a field name with a bracket": _get(b"GET /st HTTP/1.1", b"X(A: 1"),
    "a field name with NUL": _get(b"GET /st HTTP/1.1", b"X\x00A: 1"),
    "a field name with a letter beyond ASCII": _get(b"GET /st HTTP/1.1", "X-\u00c4: 1".encode()),
    "DEL in a value": _get(b"GET /st HTTP/1.1", b"X-A: \x7f"),
    "CR CR LF behind a field": _get(b"GET /st HTTP/1.1", b"X-A: 1\r"),
    "an authority with a password": _get(b"GET http://a:b@c/st HTTP/1.1"),
}
"""What has no reading, or another one elsewhere."""

_READ: dict[str, Idea] = {
    "length among spaces": (_post(b"Content-Length:  5 \t"), _HELLO, False),
    "length 0005": (_post(b"Content-Length: 0005"), _HELLO, False),
    "no length": (_post(body=b""), _EMPTY, False),
    "coding in capitals": (_coded(b"CHUNKED"), _HELLO, False),
    "coding named by Connection": (
        _post(b"Connection: transfer-encoding", b"Transfer-Encoding: chunked", body=b"5\r\nhello\r\n0\r\n\r\n"),
        _HELLO,
        False,
    ),
    "chunk size 05": (_chunked(b"05\r\nhello\r\n00\r\n\r\n"), _HELLO, False),
    "chunk size after twenty zeros": (_chunked(b"0" * 20 + b"5\r\nhello\r\n0\r\n\r\n"), _HELLO, False),
    "five chunks": (_chunked(b"".join(b"1\r\n%c\r\n" % letter for letter in b"hello") + b"0\r\n\r\n"), _HELLO, False),
    "chunk extension in quotes": (_chunked(b'5;a="b;c"\r\nhello\r\n0;d\r\n\r\n'), _HELLO, False),
    "two spaces in the request line": (_get(b"GET  /st HTTP/1.1"), _GET, False),
    "trailer with another Host": (_trailed(b"Host: b\r\n\r\n"), _HELLO, False),
    "trailer with an id": (_trailed(b"X-Request-Id: of-a-trailer\r\n\r\n"), _HELLO, False),
    "trailer with a key": (_trailed(b"Authorization: Bearer k\r\n\r\n"), _HELLO, False),
    "a chunked GET": (
        _get(b"GET /st HTTP/1.1", b"Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n",
        (("GET", "/st", b"hello"),),
        False,
    ),
    "Upgrade websocket": (
        _get(b"GET /st HTTP/1.1", b"Connection: Upgrade", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13"),
        _GET,
        False,
    ),
    "HTTP/1.0 kept": (_get(b"GET /st HTTP/1.0", b"Connection: keep-alive"), _GET, False),
    "HTTP/1.0 not kept": (_get(b"GET /st HTTP/1.0"), _GET, True),
    "closed by the client's word": (_get(b"GET /st HTTP/1.1", b"Connection: close"), _GET, True),
}

CASES: dict[str, Idea] = {name: (payload, (), True) for name, payload in _REFUSED.items()} | _READ
