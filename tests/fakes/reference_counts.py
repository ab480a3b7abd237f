"""Reading expected_counts.json: its texts are written as rules, so that the file stays small."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

TOKENIZERS = ("qwen3", "mistral-7b-instruct-v0.3", "deepseek-v3", "t5", "minilm-l6-v2")


def reference(data_dir: Path) -> dict[str, Any]:
    """Return the whole file."""
    whole: dict[str, Any] = orjson.loads((data_dir / "expected_counts.json").read_bytes())
    return whole


def text_of(content: Any) -> Any:
    """Write out `$repeat` and lists of parts to be joined; leave all else as it is."""
    match content:
        case {"$repeat": {"unit": str(unit), "times": int(times)}}:
            return unit * times
        case list() if all(isinstance(part, str) or (isinstance(part, dict) and "$repeat" in part) for part in content):
            return "".join(map(text_of, content))
        case _:
            return content


def messages_of(messages: Any) -> list[dict[str, Any]]:
    """Write out `$turns` and the contents of messages."""
    match messages:
        case {"$turns": rule}:
            turns: list[dict[str, Any]] = []
            for number in range(1, rule["pairs"] + 1):
                turns.extend(
                    {"role": role, "content": rule[role].replace("{i}", str(number))} for role in ("user", "assistant")
                )
            return [*turns, {"role": "user", "content": rule["last_user"]}]
        case _:
            return [
                {**message, "content": text_of(message["content"])} if "content" in message else message
                for message in messages
            ]


def chat_of(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case as a chat request."""
    body: dict[str, Any] = {"messages": messages_of(case["messages"])}
    if "tools" in case:
        body["tools"] = case["tools"]
    if "template_kwargs" in case:
        body["chat_template_kwargs"] = case["template_kwargs"]
    return body


def expected_chats(data_dir: Path, side: str) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Yield case, tokenizer and expectation of one side, `hf` or `tgi`; nulls are left out."""
    for case in reference(data_dir)["cases"]:
        for tokenizer, sides in case["expected"].items():
            if sides.get(side) is not None:
                yield case, tokenizer, sides[side]
