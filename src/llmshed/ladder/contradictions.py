"""Rules between the settings of a ladder."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from llmshed.config.validation import Remark

if TYPE_CHECKING:
    from llmshed.ladder.model import Ladder


def ladder_contradictions(ladder: "Ladder") -> Iterator[Remark]:
    """Yield what does not hold together."""
    seen: dict[str, int] = {}
    for index, rung in enumerate(ladder.rungs):
        if rung.name in seen:
            path = ("rungs", index, "name")
            yield Remark((path, ("rungs", seen[rung.name], "name")), f"`{rung.name}` is the name of another rung too")
        seen.setdefault(rung.name, index)
