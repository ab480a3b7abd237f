"""Asking a running gateway: its admin listener answers, and the data listener tells where that is."""

from pathlib import Path
from typing import Any

from llmshed.errors import EngineError, ExitCode, LlmshedError

from ._address import read_address
from ._input import read_text

TIMEOUT_SECONDS = 10.0
"""A gateway decides in microseconds; counting a megabyte takes a second or two."""


class RefusalError(LlmshedError):
    """The gateway answered, but not with what was asked for; the exit code says whose turn it is."""

    def __init__(self, status: int, sentence: str) -> None:
        """Take the status of the answer beside the sentence."""
        super().__init__(sentence)
        match status:
            case 401 | 403:
                self.exit_code = ExitCode.NO_PERMISSION
            case 400 | 413 | 415 | 422:
                self.exit_code = ExitCode.BAD_DATA
            case 429 | 503:
                self.exit_code = ExitCode.TEMPORARY
            case _:
                self.exit_code = ExitCode.UNAVAILABLE


class Gateway:
    """The admin listener of a gateway, found from either of its addresses."""

    def __init__(self, url: str, token_file: Path | None = None) -> None:
        """Take the address of the admin or the data listener, `http://HOST:PORT` or `HOST:PORT`.

        Raises:
            typer.BadParameter: the address of `--gateway` is none.
            LlmshedError: the token's file cannot be read, or is not text.
        """
        self.url = read_address("--gateway", url)
        self._token = None if token_file is None else read_text(str(token_file)).strip()
        self._admin: str | None = None

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post JSON to a route of the admin listener and return its answer.

        Raises:
            EngineError: nobody answers, or what answers is no gateway's admin listener.
            RefusalError: the gateway refuses the token or the question, or cannot answer now.
        """
        import orjson

        return _object(self.url, self._answer("POST", path, orjson.dumps(body)))

    def get(self, path: str) -> dict[str, Any]:
        """Get the JSON of a route of the admin listener; raises as `post`."""
        return _object(self.url, self._answer("GET", path, None))

    def text(self, path: str) -> str:
        """Get the text of a route of the admin listener, as that of `/metrics`; raises as `post`."""
        return self._answer("GET", path, None).decode(errors="replace")

    def _answer(self, method: str, path: str, body: bytes | None) -> bytes:
        if self._admin is None:
            self._admin = self._admin_url()
        status, answer = self._ask(method, self._admin + path, body)
        if status == 404:
            raise EngineError(
                f"{self.url} answered 404: no admin listener answers there;"
                " give the address of `server.admin_listen` (default http://127.0.0.1:9901)"
            )
        if status == 401:
            raise RefusalError(
                status,
                f"{self.url} answered 401: give the address of the admin listener (`server.admin_listen`),"
                " and --token-file with its token where it has one",
            )
        if status != 200:
            raise RefusalError(status, f"{self.url} answered {status}: {_message(_object(self.url, answer))}")
        return answer

    def _admin_url(self) -> str:
        """Return the address of the admin listener: the one that was given, unless a data listener answers there.

        The data listener tells callers on the same machine. It is asked first, since a question that it does not take
        would stand among its refusals.
        """
        status, answer = self._ask("GET", f"{self.url}/v1/llmshed/limits", None)
        if status != 200:
            return self.url
        admin = _object(self.url, answer).get("admin")
        if not isinstance(admin, str):
            raise EngineError(
                f"{self.url} is no admin listener and does not tell of one:"
                " give the address of `server.admin_listen` (default http://127.0.0.1:9901)"
            )
        return admin.rstrip("/")

    def _ask(self, method: str, url: str, body: bytes | None) -> tuple[int, bytes]:
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import ProxyHandler, Request, build_opener

        headers = {"content-type": "application/json"}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        opener = build_opener(ProxyHandler({}))  # a gateway is asked directly, whatever http_proxy says
        try:
            with opener.open(Request(url, body, headers, method=method), timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310 - `read_address` takes http(s) alone
                return answer.status, answer.read()
        except HTTPError as error:
            with error:
                return error.code, error.read()
        except (OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise EngineError(f"no gateway answers at {url}: {reason}") from error


def _object(url: str, raw: bytes) -> dict[str, Any]:
    import orjson

    try:
        answer = orjson.loads(raw or b"{}")
    except orjson.JSONDecodeError as error:
        raise EngineError(f"{url} answered something other than JSON: it is no llmshed gateway") from error
    if not isinstance(answer, dict):
        raise EngineError(f"{url} answered something other than a JSON object: it is no llmshed gateway")
    return answer


def _message(answer: dict[str, Any]) -> str:
    error = answer.get("error")
    if isinstance(error, dict):
        error = error.get("message")
    return str(error or answer)
