"""Why a request was not served: one table, which the HTTP contract, the metrics, docs and man pages follow."""

from enum import Enum, StrEnum
from typing import NamedTuple


class ErrorKind(StrEnum):
    """Whose turn it is after a refusal; each value is the `type` of an OpenAI error object."""

    REQUEST = "invalid_request_error"
    AUTHENTICATION = "authentication_error"
    PERMISSION = "permission_error"
    NOT_FOUND = "not_found_error"
    CONFLICT = "conflict_error"
    RATE = "rate_limit_error"
    SERVER = "server_error"


class Retry(Enum):
    """What a client is told about trying again."""

    NEVER = "never"
    """The same request will fail again: no Retry-After and `x-should-retry: false`."""
    LATER = "later"
    """Retry-After holds when; `x-should-retry: false` is added when that is over a minute."""
    UNSAFE = "unsafe"
    """Tokens may already have been generated: a blind retry pays twice, so `x-should-retry: false`."""


class ReasonRow(NamedTuple):
    """One row of the reason table."""

    status: int
    kind: ErrorKind
    retry: Retry
    meaning: str


class Reason(StrEnum):
    """The stable word for why a request was not served; low cardinality, never a sentence."""

    MALFORMED = "malformed"
    DUPLICATE_KEY = "duplicate_key"
    UNSUPPORTED_FIELD = "unsupported_field"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONTENT_ENCODING = "content_encoding"
    HEADERS_TOO_LARGE = "headers_too_large"
    CONTEXT_LIMIT = "context_limit"
    OUTPUT_LIMIT = "output_limit"
    LANE_LIMIT = "lane_limit"
    BODY_TOO_LARGE = "body_too_large"
    TOKEN_BUDGET_EXHAUSTED = "token_budget_exhausted"  # noqa: S105 - these tokens are counted, not kept secret
    PREFILL_WINDOW_FULL = "prefill_window_full"
    QUEUE_FULL = "queue_full"
    QUEUE_TIMEOUT = "queue_timeout"
    SHED_PRIORITY = "shed_priority"
    DEGRADATION_DECLINED = "degradation_declined"
    CONCURRENCY_LIMIT = "concurrency_limit"
    DEADLINE_INFEASIBLE = "deadline_infeasible"
    TENANT_QUOTA = "tenant_quota"
    COUNTING_BACKLOG = "counting_backlog"
    NO_REPLICA = "no_replica"
    DRAINING = "draining"
    STARTING = "starting"
    TOKENIZER_UNAVAILABLE = "tokenizer_unavailable"
    UPSTREAM_ERROR = "upstream_error"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    INTERNAL_ERROR = "internal_error"

    @property
    def row(self) -> ReasonRow:
        """Return status, kind, retry advice and meaning of this reason."""
        return REASON_TABLE[self]


REASON_TABLE: dict[Reason, ReasonRow] = {
    Reason.MALFORMED: ReasonRow(
        400, ErrorKind.REQUEST, Retry.NEVER, "the body is not JSON of the route's form, or came too slowly"
    ),
    Reason.DUPLICATE_KEY: ReasonRow(
        400, ErrorKind.REQUEST, Retry.NEVER, "a JSON object names one key twice, so it has two readings"
    ),
    Reason.UNSUPPORTED_FIELD: ReasonRow(
        400, ErrorKind.REQUEST, Retry.NEVER, "a field that this gateway or the engine behind it does not take"
    ),
    Reason.UNAUTHENTICATED: ReasonRow(401, ErrorKind.AUTHENTICATION, Retry.NEVER, "no key, or one that is not known"),
    Reason.FORBIDDEN: ReasonRow(
        403,
        ErrorKind.PERMISSION,
        Retry.NEVER,
        "the key does not allow this intent, class or route, or a web page of elsewhere asks a listener without keys",
    ),
    Reason.NOT_FOUND: ReasonRow(404, ErrorKind.NOT_FOUND, Retry.NEVER, "no such route or model here"),
    Reason.METHOD_NOT_ALLOWED: ReasonRow(405, ErrorKind.REQUEST, Retry.NEVER, "the route takes another method"),
    Reason.CONTENT_ENCODING: ReasonRow(
        415, ErrorKind.REQUEST, Retry.NEVER, "the body is compressed or not declared as JSON"
    ),
    Reason.HEADERS_TOO_LARGE: ReasonRow(431, ErrorKind.REQUEST, Retry.NEVER, "the headers exceed the accepted size"),
    Reason.CONTEXT_LIMIT: ReasonRow(
        413, ErrorKind.REQUEST, Retry.NEVER, "input and output together exceed what the model can hold"
    ),
    Reason.OUTPUT_LIMIT: ReasonRow(
        413, ErrorKind.REQUEST, Retry.NEVER, "more output was asked for than this endpoint ever permits"
    ),
    Reason.LANE_LIMIT: ReasonRow(
        413, ErrorKind.REQUEST, Retry.NEVER, "larger than any lane or pool here may ever take"
    ),
    Reason.BODY_TOO_LARGE: ReasonRow(413, ErrorKind.REQUEST, Retry.NEVER, "more bytes than the endpoint accepts"),
    Reason.TOKEN_BUDGET_EXHAUSTED: ReasonRow(
        429,
        ErrorKind.RATE,
        Retry.LATER,
        "the reservation does not fit, nor would it within the wait of its lane",
    ),
    Reason.PREFILL_WINDOW_FULL: ReasonRow(
        429, ErrorKind.RATE, Retry.LATER, "more prompt tokens are ahead than the wait of its lane covers"
    ),
    Reason.QUEUE_FULL: ReasonRow(429, ErrorKind.RATE, Retry.LATER, "the lane's queue has no room for another request"),
    Reason.QUEUE_TIMEOUT: ReasonRow(
        429, ErrorKind.RATE, Retry.LATER, "the request waited for as long as its lane permits"
    ),
    Reason.SHED_PRIORITY: ReasonRow(
        429, ErrorKind.RATE, Retry.LATER, "work of a higher class took its place in the queue, or its class is shed"
    ),
    Reason.DEGRADATION_DECLINED: ReasonRow(
        429, ErrorKind.RATE, Retry.LATER, "the answer would be a degraded one now, which the request declines"
    ),
    Reason.CONCURRENCY_LIMIT: ReasonRow(
        429, ErrorKind.RATE, Retry.LATER, "all sequence seats of the replicas are taken"
    ),
    Reason.DEADLINE_INFEASIBLE: ReasonRow(429, ErrorKind.RATE, Retry.LATER, "the request's own deadline cannot be met"),
    Reason.TENANT_QUOTA: ReasonRow(429, ErrorKind.RATE, Retry.LATER, "the tenant's own share is in use"),
    Reason.COUNTING_BACKLOG: ReasonRow(429, ErrorKind.RATE, Retry.LATER, "too many bytes wait to be counted as tokens"),
    Reason.NO_REPLICA: ReasonRow(503, ErrorKind.SERVER, Retry.LATER, "no replica that could serve this is up"),
    Reason.DRAINING: ReasonRow(503, ErrorKind.SERVER, Retry.LATER, "this gateway is shutting down"),
    Reason.STARTING: ReasonRow(503, ErrorKind.SERVER, Retry.LATER, "this gateway has not finished starting"),
    Reason.TOKENIZER_UNAVAILABLE: ReasonRow(
        503, ErrorKind.SERVER, Retry.LATER, "the pool's tokenizer is missing or disagrees with the engine"
    ),
    Reason.UPSTREAM_ERROR: ReasonRow(
        502, ErrorKind.SERVER, Retry.UNSAFE, "the engine failed after it was given the request"
    ),
    Reason.UPSTREAM_TIMEOUT: ReasonRow(
        504,
        ErrorKind.SERVER,
        Retry.UNSAFE,
        "the engine was silent for longer than the lane permits, or the request's own deadline passed",
    ),
    Reason.INTERNAL_ERROR: ReasonRow(
        500, ErrorKind.SERVER, Retry.UNSAFE, "the gateway itself failed; its log says how"
    ),
}
