"""Validation that reports every mistake of a text at once, in the words of the person who wrote it.

Pydantic stops at the first floor: rules between settings run only once every single setting is valid. So after a failed
attempt the faulty settings are set aside (their defaults or a stand-in take their place), the rules run on the rest,
and what they say counts unless it touches a setting that was set aside.
"""

import copy
import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from llmshed.config.catalogue import Catalogue, catalogue_of, listed
from llmshed.config.paths import Path, overlap, spelled

M = TypeVar("M", bound=BaseModel)

_ROUNDS = 4
"""Setting aside may uncover a missing setting, whose stand-in may be an element with missing settings of its own."""


_MOST_TOLD = 200
"""More single mistakes than a person mends at once; to look for what each was meant to be takes a millisecond."""


class Remark(NamedTuple):
    """A rule between settings that does not hold: the settings involved, the one to change first, and the sentence."""

    paths: tuple[Path, ...]
    message: str


class ContradictionError(ValueError):
    """Raised by a model's own validator when its settings are valid one by one but not together."""

    def __init__(self, remarks: tuple[Remark, ...]) -> None:
        """Keep the remarks for `validated`; the text is for whoever builds the model in code."""
        super().__init__("; ".join(f"{spelled(remark.paths[0])}: {remark.message}" for remark in remarks))
        self.remarks = remarks


def refuse_contradictions(remarks: Iterator[Remark]) -> None:
    """Raise `ContradictionError` when there is any remark."""
    found = tuple(remarks)
    if found:
        raise ContradictionError(found)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong, at one setting."""

    path: Path
    message: str


def validated(
    model: type[M], raw: Mapping[str, Any], stand_ins: Mapping[str, Any]
) -> tuple[M | None, tuple[Mistake, ...]]:
    """Validate a parsed text.

    Args:
        model: the model; its contradictions are raised as `ContradictionError` by a root validator.
        raw: what the TOML reader returned; it is not changed.
        stand_ins: for each setting without a default, by its name, a value that is valid on its own.

    Returns:
        The value and no mistakes, or None and at least one, in the order of the text's tables; of more than 200 single
        mistakes the rest is counted.
    """
    value, errors, remarks = _attempt(model, raw)
    if value is not None:
        return value, ()
    catalogue = catalogue_of(model)
    mistakes = [_mistake(catalogue, error) for error in errors[:_MOST_TOLD]]
    if len(errors) > _MOST_TOLD:
        rest = f"is refused, and with it {len(errors) - _MOST_TOLD - 1} more, which are told once the others are mended"
        mistakes.append(Mistake(errors[_MOST_TOLD]["loc"], rest))
    aside = [path for error in errors[:_MOST_TOLD] for path in _involved(catalogue, error)]
    aside += [error["loc"] for error in errors[_MOST_TOLD:]]
    mended: Any = copy.deepcopy(raw)
    for _ in range(_ROUNDS):
        if not errors or not all(_set_aside(mended, error, stand_ins) for error in errors):
            break
        _, errors, remarks = _attempt(model, mended)
    mistakes += [
        Mistake(remark.paths[0], remark.message)
        for remark in remarks
        if not any(overlap(path, bad) for path in remark.paths for bad in aside)
    ]
    return None, tuple(mistakes)


def _attempt(model: type[M], raw: Mapping[str, Any]) -> tuple[M | None, list[Any], tuple[Remark, ...]]:
    try:
        return model.model_validate(_frozen(raw)), [], ()
    except ValidationError as failure:
        errors = failure.errors(include_url=False)
    errors = [error for error in errors if not _echo(error)]
    raised = [error.get("ctx", {}).get("error") for error in errors]
    remarks = tuple(remark for reason in raised if isinstance(reason, ContradictionError) for remark in reason.remarks)
    single = [error for error, reason in zip(errors, raised, strict=True) if not isinstance(reason, ContradictionError)]
    return None, single, remarks


def _echo(error: Any) -> bool:
    """Say whether an error only repeats those inside a list: faulty elements are not counted as elements."""
    return bool(error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"])


def _frozen(value: Any) -> Any:
    """Return the same data with tuples for lists, as the models hold it."""
    if isinstance(value, Mapping):
        return {key: _frozen(element) for key, element in value.items()}
    return tuple(_frozen(element) for element in value) if isinstance(value, list) else value


def _mistake(catalogue: Catalogue, error: Mapping[str, Any]) -> Mistake:
    path: Path = error["loc"]
    match error["type"]:
        case "missing":
            return Mistake(path, f"is missing; accepted: {catalogue.accepted(path)}")
        case "extra_forbidden":
            return Mistake(path, f"unknown setting {unknown_hint(catalogue, path)}")
        case "value_error":
            said = f"{_shown(error['input'])} is refused: {error['ctx']['error']}"
            return Mistake(path, f"{said}; accepted: {catalogue.accepted(path)}")
        case _:
            said = f"{_shown(error['input'])} is refused; accepted: {catalogue.accepted(path)}"
            return Mistake(path, said + _choice_hint(catalogue, path, error["input"]))


def unknown_hint(catalogue: Catalogue, path: Path) -> str:
    """Return what to say of a setting that does not exist: the one that was meant, else what there is."""
    near = catalogue.nearest(path)
    if near is not None:
        return f"(did you mean `{spelled(near)}`?)"
    names = catalogue.names(path[:-1])
    return f"(accepted here: {listed([f'`{name}`' for name in names], 'and')})" if names else "(it holds no settings)"


def _choice_hint(catalogue: Catalogue, path: Path, value: Any) -> str:
    choices = (catalogue.find(path) or {}).get("enum", ())
    near = difflib.get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    return f' (did you mean "{near[0]}"?)' if near else ""


def _shown(value: Any) -> str:
    """Show a value as it stands in TOML, shortened; a URL that may hold a password is not shown."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        if "://" in value and "@" in value:
            return "this URL"
        return json.dumps(value if len(value) <= 60 else value[:57] + "...")
    return str(value)[:60]


def _involved(catalogue: Catalogue, error: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the settings that a mistake leaves unknown, the one that a misspelt name meant included."""
    yield error["loc"]
    if error["type"] == "extra_forbidden":
        near = catalogue.nearest(error["loc"])
        if near is not None:
            yield near


def _set_aside(raw: Any, error: Mapping[str, Any], stand_ins: Mapping[str, Any]) -> bool:
    """Take a faulty setting out, or put the stand-in of a missing one in; False when that cannot be done."""
    path: Path = error["loc"]
    while path and isinstance(path[-1], int):  # an element of a list: the whole list goes, so that no index moves
        path = path[:-1]
    if not path:
        return False
    table = raw
    for part in path[:-1]:
        try:
            table = table[part]
        except (KeyError, IndexError, TypeError):
            return True  # went with something around it
    if not isinstance(table, dict):
        return True
    name = str(path[-1])
    if error["type"] != "missing":
        table.pop(name, None)
        return True
    if name not in stand_ins:
        return False
    table[name] = copy.deepcopy(stand_ins[name])
    return True
