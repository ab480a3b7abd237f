"""What can be typed behind `llmshed`, read from the program itself."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import typer


@dataclass(frozen=True, slots=True)
class Verb:
    """One command as it is typed, `config check` say, with everything that may be typed behind it."""

    words: tuple[str, ...]
    options: frozenset[str]
    arguments: frozenset[str]
    choices: frozenset[str]

    @property
    def page(self) -> str:
        """Return the name of its page; the verbs of a group share one."""
        return "-".join(("llmshed", *self.words[:1])) + ".1"


@cache
def verbs() -> tuple[Verb, ...]:
    """Return every command of the tree, the root first."""
    (script,) = entry_points(group="console_scripts", name="llmshed")
    app = sys.modules[script.load().__module__].app
    return tuple(walked(typer.main.get_command(app), ()))


def walked(command: Any, words: tuple[str, ...]) -> Iterator[Verb]:
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    options = [parameter for parameter in shown if parameter.param_type_name == "option"]
    arguments = [parameter for parameter in shown if parameter.param_type_name == "argument"]
    spelled = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    usage = command.get_help(command.make_context("llmshed", [], resilient_parsing=True))
    yield Verb(
        words,
        frozenset(spelled | {"--help", "-h"}),
        frozenset((argument.metavar or argument.name).lower() for argument in arguments),
        frozenset(word for words_ in re.findall(r"<(\w+(?:\|\w+)+)>", usage) for word in words_.split("|")),
    )
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from walked(inner, (*words, name))
