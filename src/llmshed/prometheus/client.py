"""One Prometheus, asked through prometheus-api-client."""

import ast
import json
import re
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prometheus_api_client.exceptions import PrometheusApiClientException
from prometheus_api_client.prometheus_connect import PrometheusConnect
from requests import RequestException, Session
from requests.exceptions import ConnectionError as NoConnectionError
from requests.exceptions import JSONDecodeError, Timeout, TooManyRedirects
from urllib3.util import Retry

from llmshed.prometheus.answers import Series, series_of
from llmshed.prometheus.errors import PrometheusError, Trouble

_TOLD_CHARACTERS = 300
"""Of a server's own words in an error."""
_STATUS = re.compile(r"HTTP Status Code (\d{3}) \((.*)\)", re.DOTALL)
"""The library's own error keeps status and body in a sentence only."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a Prometheus is asked.

    Args:
        bearer: token; None for none.
        basic: user and password; None for none.
        authority: file of the certificates that its own is checked against; None for the system's.
        certificate: file of the client's own certificate with its key; None for none.
        checked: whether its certificate is checked at all.
    """

    bearer: str | None = None
    basic: tuple[str, str] | None = None
    authority: Path | None = None
    certificate: Path | None = None
    checked: bool = True


class Prometheus:
    """The query interface of a Prometheus at an address, which may have a path before `/api/v1`.

    A session belongs to the thread that uses it; each of them makes one of its own.
    """

    def __init__(self, url: str, access: Access, timeout_seconds: float) -> None:
        """Ask nothing yet; `timeout_seconds` bounds each wait for bytes of an answer."""
        self.url = url
        self._access = access
        self._timeout_seconds = timeout_seconds
        self._own = threading.local()

    def at(self, query: str, wall: float) -> tuple[Series, ...]:
        """Return the value of each series at an instant.

        Raises:
            PrometheusError: there is no answer, or none that can be read.
        """
        return self._ask(lambda connect: connect.custom_query(query, params={"time": f"{wall:.3f}"}))

    def over(self, query: str, start: float, end: float, step_seconds: float) -> tuple[Series, ...]:
        """Return the values of each series from `start` to `end`, in seconds since the epoch, a value each step.

        Raises:
            PrometheusError: as `at`.
        """
        since, until = (datetime.fromtimestamp(wall, UTC) for wall in (start, end))
        return self._ask(lambda connect: connect.custom_query_range(query, since, until, step=f"{step_seconds:g}"))

    def _ask(self, question: Any) -> tuple[Series, ...]:
        try:
            return series_of(question(self._connect()))
        except PrometheusApiClientException as error:
            raise self._refused(str(error)) from None
        except Timeout:
            message = f"{self.url}: no answer within {self._timeout_seconds:g} s"
            raise PrometheusError(Trouble.TIMED_OUT, message) from None
        except (JSONDecodeError, KeyError, TypeError, ValueError):
            raise self._foreign("something that is no answer of its query interface") from None
        except TooManyRedirects:
            raise self._foreign("a redirect") from None
        except NoConnectionError as error:
            raise PrometheusError(
                Trouble.UNREACHABLE, f"no Prometheus answers at {self.url}: {_cause(error)}"
            ) from None
        except RequestException as error:
            raise PrometheusError(Trouble.UNREACHABLE, f"{self.url} cannot be asked: {_cause(error)}") from None

    def _connect(self) -> PrometheusConnect:
        connect: PrometheusConnect | None = getattr(self._own, "connect", None)
        if connect is None:
            connect = self._own.connect = PrometheusConnect(
                self.url,
                session=self._session(),
                retry=Retry(total=0),  # the library's own three tries turn one second into ten, and lose what was told
                timeout=self._timeout_seconds,  # type: ignore[arg-type]  # it is handed to requests, which takes fractions
                method="POST",
            )
        return connect

    def _session(self) -> Session:
        session = Session()
        session.trust_env = False  # a .netrc would take the place of the token, and a proxy see it
        session.max_redirects = 0  # a redirected POST becomes a GET without its question
        session.auth = self._access.basic
        if self._access.bearer is not None:
            session.headers["Authorization"] = f"Bearer {self._access.bearer}"
        authority = self._access.authority
        session.verify = self._access.checked if authority is None else str(authority)
        if self._access.certificate is not None:
            session.cert = str(self._access.certificate)
        return session

    def _refused(self, told: str) -> PrometheusError:
        """Turn the library's error into one that says whose turn it is."""
        found = _STATUS.match(told)
        status, body = (int(found[1]), found[2]) if found else (0, told)
        words = f"{self.url} answered {status}: {_server_words(body)}"
        match status:
            case 401 | 403:
                return PrometheusError(Trouble.FORBIDDEN, f"{words}; a token or password is read from a file")
            case 400 | 422 if "errorType" in body:
                return PrometheusError(Trouble.BAD_QUERY, words)
            case 429 | 500 | 502 | 503 | 504:
                return PrometheusError(Trouble.UNABLE, words)
            case _:
                return self._foreign(f"status {status}")

    def _foreign(self, what: str) -> PrometheusError:
        path = urlsplit(self.url).path
        hint = "is the path right?" if path.strip("/") else "Thanos and Mimir need a path, as in /prometheus"
        return PrometheusError(Trouble.NOT_PROMETHEUS, f"{self.url} answers {what}: no Prometheus is there; {hint}")


def _server_words(body: str) -> str:
    """Return what a server says of an error, shortened; the library shows a body as Python writes bytes."""
    try:
        text = ast.literal_eval(body).decode(errors="replace")
    except (ValueError, SyntaxError, AttributeError):
        text = body
    with suppress(ValueError, KeyError, TypeError):  # a front's own words, or a page
        text = str(json.loads(text)["error"])
    return " ".join(text.split())[:_TOLD_CHARACTERS] or "nothing"


def _cause(error: BaseException) -> str:
    """Return the last words of a chain of causes: the first ones repeat addresses and pools."""
    reason = getattr(error.args[0], "reason", error) if error.args else error
    return str(reason).rsplit(": ", 1)[-1].strip("<>)'\"") or type(error).__name__
