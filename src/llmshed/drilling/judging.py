"""The checks themselves, in a process of their own: a pattern can take longer than anybody lives, and hold up a thread.

Run as `python -m llmshed.drilling.judging`: it writes a line when it is ready, and then one for each line on standard
input, which is a question. Whoever asks ends the process when an answer takes too long.
"""

import importlib
import json
import re
import sys
from contextlib import suppress
from typing import Any


def judged(check: dict[str, Any], answer: str) -> float:
    """Return what a check finds of an answer: 1 where it holds, else 0.

    Args:
        check: one of `exact`, `regex` and `json_schema`, as in a case.
        answer: the text that was answered.
    """
    fold = bool(check.get("ignore_case"))
    if (text := check.get("exact")) is not None:
        one, other = answer.strip(), text.strip()
        return float(one.casefold() == other.casefold() if fold else one == other)
    if (pattern := check.get("regex")) is not None:
        return float(re.search(pattern, answer, re.IGNORECASE if fold else 0) is not None)
    return float(_fits(check["json_schema"], answer))


def _fits(schema: Any, answer: str) -> bool:
    from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415 - an extra
    from referencing import Registry  # noqa: PLC0415 - comes with it

    try:
        value = json.loads(answer)
    except ValueError:
        return False
    # An empty registry: what a schema refers to elsewhere is not fetched.
    return bool(validator_for(schema, default=Draft202012Validator)(schema, registry=Registry()).is_valid(value))


def main() -> None:
    """Answer questions until standard input ends."""
    with suppress(ImportError):  # imported now, it takes nothing of the first question's time
        importlib.import_module("jsonschema.validators")
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    for line in sys.stdin:
        question = json.loads(line)
        try:
            told: dict[str, Any] = {"result": judged(question["check"], question["answer"])}
        except Exception as error:  # noqa: BLE001 - a schema may fail in many ways, and the others are still to be judged
            told = {"error": f"{type(error).__name__}: {error}"[:300]}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
