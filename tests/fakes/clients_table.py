"""What real clients do when they are refused, as docs/clients.md tells it: the tests run every row of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from fakes.clients import Environment
from llmshed.admission.reasons import Reason

HERE = Environment("here")
"""The environment of the tests, with the extra `clients`."""


class Told(Enum):
    """What a refusal tells of trying again; clients tell no more kinds apart."""

    NEVER = "refused for good"
    """400 to 431, 413: no `Retry-After`, `x-should-retry: false`."""
    LATER = "told to wait"
    """429 and 503 with a `Retry-After` of at most a minute."""
    NOT_BY_ITSELF = "told to wait, not by itself"
    """429 with a `Retry-After` and `x-should-retry: false`."""
    UNSAFE = "failed at the engine"
    """500, 502 and 504: no `Retry-After`, `x-should-retry: false`."""
    CUT = "failed in the stream"
    """An error event, or a connection that broke, after the 200."""


@dataclass(frozen=True, slots=True)
class Client:
    """One client and how it behaves.

    Args:
        name: as the page has it.
        asks: its functions in `clients_ask`, by whether they ask an OpenAI route.
        environments: where it is run, the version that the page names first.
        tries: requests in all that it sends, by what it is told; one where nothing is said.
        obeys: whether it waits as told before each further try.
        raises: class of what it raises, by reason, else by status: 200 is a stream that fails, 0 whatever is not named.
        sits_out: whether it comes back after minutes too, which no test waits for.
        options: arguments of the client.
    """

    name: str
    asks: Mapping[str, bool]
    environments: tuple[Environment, ...]
    tries: Mapping[Told, int]
    raises: Mapping[int | Reason, str]
    obeys: bool = True
    sits_out: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def raised(self, *known_by: int | Reason) -> str:
        """Return the class of what it raises, by the first that the table names."""
        return next(self.raises[one] for one in (*known_by, 0) if one in self.raises)


OPENAI_3 = Environment("openai-3", ("openai==3.57.0",))
OPENAI_2 = Environment("openai-2", ("openai==2.54.0",))
OPENAI_1 = Environment("openai-1", ("openai==1.109.1",))
HUB = Environment("huggingface-hub", ("huggingface_hub==2.4.0",))
LITELLM = Environment("litellm", ("litellm==1.110.2", "tenacity==9.2.1"))
LANGCHAIN = Environment("langchain-openai", ("langchain-openai==1.7.4",))
NODE = Environment("openai-node", ("openai@6.49.0",), node=True)

COLUMNS: tuple[tuple[str, int | Reason], ...] = (
    *((str(status), status) for status in (400, 401, 403, 404)),
    ("413 `context_limit`", Reason.CONTEXT_LIMIT),
    *((str(status), status) for status in (413, 429, 500, 502, 503, 504)),
    ("stream", 200),
)
"""What the page tells the exceptions of, beside what `Client.raises` knows each by."""

SDK_TRIES = {Told.LATER: 3}
OPENAI_RAISES: dict[int | Reason, str] = {
    0: "APIStatusError",
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    429: "RateLimitError",
    **dict.fromkeys((500, 502, 503, 504), "InternalServerError"),
    200: "APIError",
}
NODE_RAISES = OPENAI_RAISES | {0: "APIError"}
LANGCHAIN_RAISES: dict[int | Reason, str] = {
    0: "APIStatusError",
    400: "OpenAIInvalidRequestError",
    401: "OpenAIAuthenticationError",
    403: "OpenAIPermissionDeniedError",
    404: "OpenAIModelNotFoundError",
    Reason.CONTEXT_LIMIT: "OpenAIAPIContextOverflowError",
    429: "OpenAIRateLimitError",
    **dict.fromkeys((500, 502, 503, 504), "OpenAIAPIError"),
    200: "APIError",
}
LITELLM_RAISES: dict[int | Reason, str] = {
    0: "APIError",
    400: "BadRequestError",
    401: "AuthenticationError",
    404: "NotFoundError",
    Reason.CONTEXT_LIMIT: "ContextWindowExceededError",
    429: "RateLimitError",
    500: "InternalServerError",
    502: "BadGatewayError",
    503: "ServiceUnavailableError",
    504: "Timeout",
    200: "MidStreamFallbackError",
}
TGI_RAISES: dict[int | Reason, str] = {
    0: "ValidationError",
    404: "-",  # the native routes name no model
    401: "UnknownError",
    429: "OverloadedError",
    503: "OverloadedError",
    **dict.fromkeys((500, 502, 504, 200), "GenerationError"),
}

CLIENTS = (
    Client(
        "openai (Python)",
        {"openai_chat": True, "openai_chat_stream": True, "openai_completion": True},
        (HERE, OPENAI_3, OPENAI_2, OPENAI_1),
        SDK_TRIES,
        OPENAI_RAISES,
    ),
    Client("openai (Node)", {"node_chat": True, "node_chat_stream": True}, (NODE,), SDK_TRIES, NODE_RAISES),
    Client(
        "langchain-openai",
        {"langchain_chat": True, "langchain_chat_stream": True},
        (LANGCHAIN,),
        SDK_TRIES,
        LANGCHAIN_RAISES,
    ),
    Client("litellm", {"litellm_chat": True, "litellm_chat_stream": True}, (LITELLM,), SDK_TRIES, LITELLM_RAISES),
    Client(
        "litellm, `num_retries=2`",
        {"litellm_chat": True},
        (LITELLM,),
        {Told.NEVER: 3, Told.LATER: 5, Told.NOT_BY_ITSELF: 3, Told.UNSAFE: 3},
        LITELLM_RAISES,
        obeys=False,
        options={"num_retries": 2},
    ),
    Client(
        "huggingface_hub, chat",
        {"hub_chat": True, "hub_chat_stream": True},
        (HERE, HUB),
        {},
        {0: "HfHubHTTPError", 400: "BadRequestError", 200: "GenerationError"},
    ),
    Client(
        "huggingface_hub, text_generation",
        {"hub_generate": False, "hub_generate_stream": False},
        (HERE, HUB),
        {},
        TGI_RAISES,
    ),
    Client(
        "text-generation",
        {"tgi_chat": True, "tgi_generate": False, "tgi_generate_stream": False},
        (HERE,),
        {},
        TGI_RAISES,
    ),
    Client(
        "urllib3, `Retry(2, allowed_methods=None)`",
        {"urllib3_generate": False, "urllib3_chat": True},
        (HERE,),
        {Told.LATER: 3, Told.NOT_BY_ITSELF: 3},
        {0: "StatusError"},
        sits_out=True,
    ),
)
