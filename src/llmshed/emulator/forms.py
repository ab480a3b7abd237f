"""Request bodies as TGI's router declares them (router/src/lib.rs): unknown fields ignored, types strict."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

U32 = Annotated[int, Field(ge=0, lt=2**32)]
U64 = Annotated[int, Field(ge=0, lt=2**64)]
I32 = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class Form(BaseModel):
    """A body or a part of one; null is taken only where the router takes it."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class JsonGrammar(Form):
    """Output must match a JSON schema, given as an object or as its text."""

    type: Literal["json", "json_object"]
    value: Any


class RegexGrammar(Form):
    """Output must match a regular expression."""

    type: Literal["regex"]
    value: str


class SchemaConfig(Form):
    """A JSON schema with a name."""

    name: str | None = None
    definition: Any = Field(alias="schema")


class SchemaGrammar(Form):
    """Output must match a named JSON schema."""

    type: Literal["json_schema"]
    value: SchemaConfig


Grammar = JsonGrammar | RegexGrammar | SchemaGrammar
_Grammar = Annotated[Grammar, Field(discriminator="type")]


class Parameters(Form):
    """`parameters` of the native routes."""

    best_of: U64 | None = None
    temperature: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    top_k: I32 | None = None
    top_p: float | None = None
    typical_p: float | None = None
    do_sample: bool = False
    max_new_tokens: U32 | None = None
    return_full_text: bool | None = None
    stop: list[str] = []
    truncate: U64 | None = None
    watermark: bool = False
    details: bool = False
    decoder_input_details: bool = False
    seed: U64 | None = None
    top_n_tokens: U32 | None = None
    grammar: _Grammar | None = None
    adapter_id: str | None = None

    @property
    def samples(self) -> bool:
        """Say whether the next token is drawn, by TGI's rule."""
        asked = (self.temperature, self.top_k, self.top_p, self.typical_p)
        return self.do_sample or any(value is not None for value in asked)


class GenerateForm(Form):
    """Body of `/generate`, `/generate_stream`, `/tokenize` and, with `stream`, of `/`."""

    inputs: str
    # Without `parameters` TGI samples; with them, even empty, it does not.
    parameters: Parameters = Parameters(do_sample=True)
    stream: bool = False


class VertexInstance(Form):
    """One of the native instances of `/vertex`."""

    inputs: str
    parameters: Parameters | None = None


class VertexForm(Form):
    """Body of `/vertex`; each instance is read as whatever it can be."""

    instances: list[Any]


class StreamOptions(Form):
    """`stream_options` of the chat route."""

    include_usage: bool = False


class ChatForm(Form):
    """Body of `/v1/chat/completions` and `/chat_tokenize`; messages and tools are checked where they are rendered."""

    model: str | None = None
    messages: list[dict[str, Any]]
    frequency_penalty: float | None = None
    logit_bias: list[float] | None = None
    logprobs: bool | None = None
    top_logprobs: U32 | None = None
    max_tokens: U32 | None = None
    max_completion_tokens: U32 | None = None
    n: U32 | None = None
    presence_penalty: float | None = None
    stop: list[str] | None = None
    stream: bool = False
    seed: U64 | None = None
    temperature: float | None = None
    top_p: float | None = None
    tools: list[dict[str, Any]] | None = None
    tool_prompt: str | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: _Grammar | None = None
    stream_options: StreamOptions = StreamOptions()

    def with_newer_ceiling(self) -> "ChatForm":
        """Take OpenAI's `max_completion_tokens`, an alias of `max_tokens` from 3.1.0 on.

        Raises:
            FormError: both are there, which serde reads as one field twice.
        """
        if "max_completion_tokens" not in self.model_fields_set:
            return self
        if "max_tokens" in self.model_fields_set:
            raise FormError("duplicate field `max_tokens` at line 1 column 1")
        return self.model_copy(update={"max_tokens": self.max_completion_tokens})


class CompletionForm(Form):
    """Body of `/v1/completions`."""

    model: str | None = None
    prompt: str | Annotated[list[str], Field(min_length=1)]
    max_tokens: U32 | None = None
    temperature: float | None = None
    top_p: float | None = None
    stream: bool = False
    seed: U64 | None = None
    suffix: str | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float | None = None
    stop: list[str] | None = None


F = TypeVar("F", bound=Form)


class FormError(ValueError):
    """A body of the wrong shape; the text is what serde would say, as near as it matters."""


def read_form(form: type[F], body: Any) -> F:
    """Read a parsed body as a form.

    Raises:
        FormError: a field is missing, of another type or out of range; the text names it.
    """
    try:
        return form.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        if first["type"] == "missing":
            parent, _, name = path.rpartition(".")
            where = f"{parent}: " if parent else ""
            raise FormError(f"{where}missing field `{name}` at line 1 column 1") from None
        raise FormError(f"{path or '.'}: {first['msg']} at line 1 column 1") from None
