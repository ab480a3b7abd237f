"""The tables of fields, against TGI's source, the clients' own types and the documentation."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from llmshed.engines.base import Route
from llmshed.engines.fields import Fate, FieldTable
from llmshed.engines.tgi.fields import (
    CHAT_FIELDS,
    COMPLETION_FIELDS,
    GENERATE_FIELDS,
    IMAGE_PART_FIELDS,
    IMAGE_URL_FIELDS,
    MESSAGE_FIELDS,
    PARAMETER_FIELDS,
    ROOT_FIELDS,
    ROUTE_FIELDS,
    STREAM_OPTIONS,
    TEXT_PART_FIELDS,
    TOKENIZE_FIELDS,
)

# Fields of the structs in router/src/lib.rs of TGI 3.3.7 that its handlers read.
TGI_CHAT = [
    "model",
    "messages",
    "frequency_penalty",
    "logprobs",
    "top_logprobs",
    "max_tokens",
    "presence_penalty",
    "stop",
    "stream",
    "seed",
    "temperature",
    "top_p",
    "tools",
    "tool_prompt",
    "tool_choice",
    "response_format",
    "stream_options",
]
TGI_COMPLETION = [
    "model",
    "prompt",
    "max_tokens",
    "temperature",
    "top_p",
    "stream",
    "seed",
    "repetition_penalty",
    "frequency_penalty",
    "stop",
]
TGI_PARAMETERS = [
    "best_of",
    "temperature",
    "repetition_penalty",
    "frequency_penalty",
    "top_k",
    "top_p",
    "typical_p",
    "do_sample",
    "max_new_tokens",
    "return_full_text",
    "stop",
    "truncate",
    "watermark",
    "details",
    "decoder_input_details",
    "seed",
    "top_n_tokens",
    "grammar",
]

DOCUMENTED = {
    "`POST /`": ROOT_FIELDS,
    "`POST /generate` and `POST /generate_stream`": GENERATE_FIELDS,
    "`POST /tokenize`": TOKENIZE_FIELDS,
    "`parameters` of these routes": PARAMETER_FIELDS,
    "`POST /v1/chat/completions` and `POST /chat_tokenize`": CHAT_FIELDS,
    "`stream_options`": STREAM_OPTIONS,
    "A message": MESSAGE_FIELDS,
    "A part of type `text`": TEXT_PART_FIELDS,
    "A part of type `image_url`": IMAGE_PART_FIELDS,
    "`image_url` of a part": IMAGE_URL_FIELDS,
    "`POST /v1/completions`": COMPLETION_FIELDS,
}


def documentation(table: FieldTable) -> str:
    """The table of a section as docs/engines.md has it: fields by fate, then in the order of the code."""
    order = list(Fate)
    lines = ["| field | what becomes of it | takes | note |", "|---|---|---|---|"]
    for name, row in sorted(table.items(), key=lambda item: order.index(item[1].fate)):
        takes = "" if row.fate is Fate.REFUSED else row.kind.value.text
        lines.append(f"| `{name}` | {row.fate} | {takes} | {row.note} |")
    return "\n".join(lines)


@pytest.mark.parametrize("title", DOCUMENTED)
def test_the_documentation_repeats_the_tables(repository: Path, title: str) -> None:
    text = (repository / "docs" / "engines.md").read_text()
    table = documentation(DOCUMENTED[title])
    assert f"### {title}\n\n{table}\n" in text, f"docs/engines.md should have under {title}:\n{table}"


def test_every_route_has_its_table() -> None:
    assert set(ROUTE_FIELDS) == set(Route)
    assert all(any(table == documented for documented in DOCUMENTED.values()) for table in ROUTE_FIELDS.values())


@pytest.mark.parametrize(
    ("table", "read_by_tgi"),
    [(CHAT_FIELDS, TGI_CHAT), (COMPLETION_FIELDS, TGI_COMPLETION), (PARAMETER_FIELDS, TGI_PARAMETERS)],
)
def test_what_tgi_reads_reaches_it_and_nothing_else_is_passed_on_unread(
    table: FieldTable, read_by_tgi: list[str]
) -> None:
    going_on = {name for name, row in table.items() if row.fate in {Fate.COUNTED, Fate.FORWARDED}}
    # Copies and the second name of the ceiling are counted, whether or not TGI uses them.
    assert going_on - {"n", "best_of", "max_completion_tokens"} == set(read_by_tgi) - {"best_of"}


@pytest.mark.parametrize("table", DOCUMENTED.values())
def test_every_refused_or_dropped_field_says_why(table: FieldTable) -> None:
    assert all(row.note for row in table.values() if row.fate in {Fate.DROPPED, Fate.REFUSED})


def names_of(module: str, type_name: str) -> set[str]:
    """The fields of a client's own type: a typed dictionary, a dataclass or a pydantic model."""
    kind: Any = getattr(pytest.importorskip(module), type_name)
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind)}
    return set(kind.__annotations__)


@pytest.mark.parametrize(
    ("module", "type_name", "table"),
    [
        ("openai.types.chat.completion_create_params", "CompletionCreateParamsBase", CHAT_FIELDS),
        ("openai.types.chat.chat_completion_user_message_param", "ChatCompletionUserMessageParam", MESSAGE_FIELDS),
        (
            "openai.types.chat.chat_completion_assistant_message_param",
            "ChatCompletionAssistantMessageParam",
            MESSAGE_FIELDS,
        ),
        ("openai.types.chat.chat_completion_tool_message_param", "ChatCompletionToolMessageParam", MESSAGE_FIELDS),
        ("openai.types.chat.chat_completion_message", "ChatCompletionMessage", MESSAGE_FIELDS),
        ("openai.types.chat.chat_completion_stream_options_param", "ChatCompletionStreamOptionsParam", STREAM_OPTIONS),
        ("openai.types.completion_create_params", "CompletionCreateParamsBase", COMPLETION_FIELDS),
        ("huggingface_hub", "ChatCompletionInput", CHAT_FIELDS),
        ("huggingface_hub", "ChatCompletionInputMessage", MESSAGE_FIELDS),
        ("huggingface_hub", "TextGenerationInput", ROOT_FIELDS),
        ("huggingface_hub", "TextGenerationInputGenerateParameters", PARAMETER_FIELDS),
        ("text_generation.types", "ChatRequest", CHAT_FIELDS),
        ("text_generation.types", "Message", MESSAGE_FIELDS),
        ("text_generation.types", "Request", ROOT_FIELDS),
        ("text_generation.types", "Parameters", PARAMETER_FIELDS),
    ],
)
def test_every_field_that_a_client_can_send_is_known(module: str, type_name: str, table: FieldTable) -> None:
    assert names_of(module, type_name) - set(table) == set()
