"""Which requests `llmshed calibrate` sends: a mix that was typed, or one drawn from a trace."""

import re
from random import Random
from typing import TYPE_CHECKING

import typer

from llmshed.errors import TraceError

from ._calibrate_options import DEFAULT_MIX

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from llmshed.admission.policy import LanePolicy
    from llmshed.admission.request import Lane
    from llmshed.calibration.plan import Shape
    from llmshed.workload.ceilings import CeilingRule

MOST_SHAPES = 400
"""Requests drawn from a trace: enough that the largest one in a hundred is there."""
MOST_TIMES = 100
_PART = re.compile(r"(?P<input>[0-9]{1,8})/(?P<ceiling>[0-9]{1,8})(?:\*(?P<times>[0-9]{1,3}))?")


def asked_mix(
    mix: str | None, workload: "Path | None", ceiling: str | None, lanes: "Mapping[Lane, LanePolicy]", seed: int
) -> "tuple[str, tuple[Shape, ...]]":
    """Return what is sent, in words and as requests: a typed mix, one drawn from a file, or the default.

    Raises:
        typer.BadParameter: both were given, or the typed one cannot be used.
        MissingInputError: the file cannot be read.
        TraceError: it is no trace, or holds no request that a lane takes.
    """
    from llmshed.workload.ceilings import CeilingRule

    if mix is not None and workload is not None:
        raise typer.BadParameter("--mix and --workload: one of them says what is sent")
    if workload is None:
        words = mix or DEFAULT_MIX
        return words, typed_mix(words, lanes)
    rule = None if ceiling is None else CeilingRule(ceiling)
    return f"{workload.name}, ceilings {ceiling or 'asked'}", drawn_mix(str(workload), rule, lanes, seed)


def is_typed(words: str) -> bool:
    """Say whether words are those of a typed mix, so that it can be sent again."""
    return all(_PART.fullmatch(part.strip()) for part in words.split(","))


def typed_mix(text: str, lanes: "Mapping[Lane, LanePolicy]") -> "tuple[Shape, ...]":
    """Return the requests of a mix like `512/128*3,2048/512`: input and output ceiling, and how often.

    Raises:
        typer.BadParameter: it has another form, or one of its requests belongs to no lane.
    """
    shapes: list[Shape] = []
    for part in text.split(","):
        found = _PART.fullmatch(part.strip())
        times = int(found["times"] or 1) if found else 0
        if found is None or not 1 <= times <= MOST_TIMES:
            raise typer.BadParameter(f"--mix {part!r}: must be INPUT/CEILING or INPUT/CEILING*TIMES, as in 512/128*3")
        shape = _shape(int(found["input"]), int(found["ceiling"]), lanes)
        if shape is None:
            raise typer.BadParameter(f"--mix {part!r}: no lane takes a request of that size")
        shapes.extend([shape] * times)
    return tuple(shapes)


def drawn_mix(
    file: str, rule: "CeilingRule | None", lanes: "Mapping[Lane, LanePolicy]", seed: int
) -> "tuple[Shape, ...]":
    """Return requests of a trace, each with the same chance; those that no lane takes are left out.

    Raises:
        MissingInputError: the file cannot be read.
        TraceError: it is no trace, or holds no request that a lane takes.
    """
    from llmshed.workload.ceilings import CeilingRule, ceiling_tokens

    from ._whatif_traffic import Part, opened_traffic

    rng = Random(f"{seed}/mix")  # noqa: S311 - which requests are sent is no secret
    kept: list[Shape] = []
    seen = 0
    # Sizes alone are looked at, so a rate is there for sources that have none and changes nothing of others.
    with opened_traffic(file, None, Part(rate_per_second=1.0, retimed=True), seed) as traffic:
        asked = CeilingRule.ASKED if traffic.summary.with_ceiling else CeilingRule.POW2
        for request in traffic.requests():
            ceiling = ceiling_tokens(rule or asked, request) or ceiling_tokens(CeilingRule.POW2, request)
            shape = _shape(request.input_tokens, ceiling or 1, lanes)
            if shape is None:
                continue
            seen += 1
            if len(kept) < MOST_SHAPES:
                kept.append(shape)
            elif (place := rng.randrange(seen)) < MOST_SHAPES:
                kept[place] = shape
    if not kept:
        raise TraceError(f"{file}: none of its requests belongs to a lane")
    return tuple(kept)


def _shape(input_tokens: int, ceiling_tokens: int, lanes: "Mapping[Lane, LanePolicy]") -> "Shape | None":
    """Return a request with the lane that its size puts it into; None for none."""
    from llmshed.admission.lanes import lane_of
    from llmshed.admission.request import Intent, Lane
    from llmshed.calibration.plan import Shape

    from ._offline import stated_request

    if min(input_tokens, ceiling_tokens) < 1:
        return None
    request = stated_request((input_tokens,), {"max_output": ceiling_tokens})
    lane = lane_of(request, Intent.INTERACTIVE, lanes)
    return None if lane is Lane.OVERFLOW else Shape(input_tokens, ceiling_tokens, lane.value)
