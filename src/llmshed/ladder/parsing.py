"""From the text of a ladder file to a Ladder."""

from datetime import date

from llmshed.config.paths import spelled
from llmshed.config.texts import TomlSyntaxError, line_of, read_toml
from llmshed.config.validation import validated
from llmshed.errors import LadderError
from llmshed.ladder.model import Ladder

_SOME_DAY = date(2000, 1, 1)
STAND_INS = {
    "schema": "llmshed.ladder/1",
    "name": "unnamed",
    "version": "0",
    "action": "stop_bulk",
    "owner": "nobody",
    "agreed_on": _SOME_DAY,
    "rungs": [{"name": "unnamed", "action": "stop_bulk", "owner": "nobody", "agreed_on": _SOME_DAY}],
}
"""A valid value for each field without a default, so that rules between fields can be checked around a gap."""


def parse_ladder(text: str, source: str) -> Ladder:
    """Read and validate a ladder.

    Args:
        text: TOML.
        source: name of the file, for messages.

    Raises:
        LadderError: one line for every mistake, `SOURCE:LINE: path: what is wrong, what is accepted`.
    """
    try:
        raw, lines = read_toml(text)
    except TomlSyntaxError as error:
        raise LadderError(f"{source}:{error}") from None
    ladder, mistakes = validated(Ladder, raw, STAND_INS)
    if ladder is None:
        found = sorted((line_of(lines, mistake.path), spelled(mistake.path), mistake.message) for mistake in mistakes)
        raise LadderError("\n".join(f"{source}:{line}: {path}: {message}" for line, path, message in found))
    return ladder
