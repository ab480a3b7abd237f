"""The evaluation set: a file of lines, each a case with its checks."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

import orjson
from pydantic import Field, ValidationError, model_validator

from llmshed.config.base import Settings
from llmshed.errors import ExitCode, LlmshedError

MOST_CASES = 10_000
MOST_SET_BYTES = 64 << 20
MOST_PROBLEMS = 20
"""Mistakes of a file that are told at once; whoever made a hundred alike sees it by these."""
KINDS = ("exact", "regex", "json_schema", "scorer")


class SetError(LlmshedError):
    """An evaluation set cannot be used; every mistake with its line."""

    exit_code = ExitCode.BAD_DATA


class Check(Settings):
    """One check of an answer: exactly one of the four."""

    exact: str | None = None
    """The answer is this text, white space at both ends apart."""
    regex: str | None = None
    """The pattern is found in the answer, in Python's syntax."""
    json_schema: dict[str, Any] | bool | None = None
    """The answer is JSON that the schema takes."""
    scorer: Annotated[tuple[str, ...], Field(min_length=1, strict=False)] | None = None
    """The program and its arguments; it reads JSON on standard input and prints a number from 0 to 1."""
    ignore_case: bool = False
    """`exact` and `regex`: upper and lower case count as the same."""

    @model_validator(mode="after")
    def _one(self) -> "Check":
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"needs exactly one of {', '.join(KINDS)}")
        if self.ignore_case and given[0] not in {"exact", "regex"}:
            raise ValueError("ignore_case belongs to exact and regex")
        if self.regex is not None:
            try:
                re.compile(self.regex)
            except (re.error, RecursionError, OverflowError) as error:
                raise ValueError(f"regex: {error}") from None
        return self


class Case(Settings):
    """One line of the set."""

    id: Annotated[str, Field(min_length=1, max_length=256)]
    """By which it is known in the results; each once."""
    messages: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, strict=False)]
    """The chat, as `/v1/chat/completions` takes it."""
    checks: Annotated[tuple[Check, ...], Field(min_length=1, strict=False)]
    """All of them have to hold: the least is the case's result."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Output ceiling that is asked for; unset: the lane's default."""
    weight: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """How much it counts beside the others."""
    tools: Annotated[tuple[dict[str, Any], ...], Field(strict=False)] | None = None
    """Tools that are offered to the model."""
    llmshed: dict[str, Any] | None = None
    """What callers declare to the gateway: enrichment and optional context."""

    def body(self, model: str) -> dict[str, Any]:
        """Return the request; it is answered as it comes, so that its first token is seen."""
        asked = {"max_tokens": self.max_tokens, "tools": self.tools, "llmshed": self.llmshed}
        return {
            "model": model,
            "messages": self.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
            "seed": 0,
        } | {name: value for name, value in asked.items() if value is not None}


def read_cases(content: bytes, name: str) -> tuple[Case, ...]:
    """Return the cases of a set.

    Raises:
        SetError: it has none, too many, one id twice, or lines that are no cases.
    """
    cases: list[Case] = []
    problems: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        found = _case(line)
        if isinstance(found, Case):
            if found.id in seen:
                problems.append(f"{name}: line {number}: id: `{found.id}` is that of line {seen[found.id]}, too")
            seen.setdefault(found.id, number)
            cases.append(found)
        else:
            problems += [f"{name}: line {number}: {problem}" for problem in found]
        if len(problems) >= MOST_PROBLEMS:
            break
    if problems:
        raise SetError("\n".join(problems[:MOST_PROBLEMS]))
    if not cases or len(cases) > MOST_CASES:
        raise SetError(f"{name}: holds {len(cases):,} cases; from 1 to {MOST_CASES:,} are taken, one a line")
    return tuple(cases)


def _case(line: bytes) -> Case | list[str]:
    try:
        return Case.model_validate(orjson.loads(line))
    except orjson.JSONDecodeError as error:
        return [f"is not JSON: {error}"]
    except ValidationError as error:
        return list(_problems(error))


def _problems(error: ValidationError) -> Iterator[str]:
    errors = error.errors(include_url=False, include_input=False)
    places = [one["loc"] for one in errors]
    for one in errors:
        # A list whose items are wrong is said to have none, too.
        if any(len(place) > len(one["loc"]) and place[: len(one["loc"])] == one["loc"] for place in places):
            continue
        place = ".".join(str(part) for part in one["loc"])
        message = one["msg"].removeprefix("Value error, ")
        yield f"{place}: {message}" if place else message
