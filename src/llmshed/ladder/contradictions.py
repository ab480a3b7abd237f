"""Rules between the settings of a ladder.

The words of actions and signals stand here as they do in the file: the model that declares them calls these rules.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from llmshed.admission.request import CLASSES, PriorityClass
from llmshed.config.paths import Path
from llmshed.config.validation import Remark

if TYPE_CHECKING:
    from llmshed.ladder.model import Ladder, Rung

FIELDS = {
    "cap_output": ("max_output_tokens",),
    "shrink_context": ("drop_share",),
    "smaller_model": ("pool",),
    "disable_thinking": ("template_argument", "prompt_suffix", "pool"),
    "preempt_bulk": ("requeue_tokens_per_minute",),
}
"""Settings of a rung that belong to an action; each takes at least one of its own, and none of another's."""


def ladder_contradictions(ladder: "Ladder") -> Iterator[Remark]:
    """Yield what does not hold together."""
    yield from _names(ladder.rungs)
    for index, rung in enumerate(ladder.rungs):
        yield from _fields(("rungs", index), rung)
        yield from _bounds(("rungs", index), rung)
        if rung.exit.windows > ladder.windows.most_exit_windows:
            yield Remark(
                (("rungs", index, "exit", "windows"), ("windows", "most_exit_windows")),
                f"{rung.exit.windows} is more than `windows.most_exit_windows`, {ladder.windows.most_exit_windows}",
            )
    yield from _sheds(ladder.rungs)


def _names(rungs: tuple["Rung", ...]) -> Iterator[Remark]:
    seen: dict[str, int] = {}
    for index, rung in enumerate(rungs):
        if rung.name in seen:
            path = ("rungs", index, "name")
            yield Remark((path, ("rungs", seen[rung.name], "name")), f"`{rung.name}` is the name of another rung too")
        seen.setdefault(rung.name, index)


def _fields(path: Path, rung: "Rung") -> Iterator[Remark]:
    own = FIELDS.get(rung.action, ())
    given = [field for fields in FIELDS.values() for field in fields if getattr(rung, field) is not None]
    for field in sorted({field for field in given if field not in own}):
        owners = [f'"{action}"' for action, fields in FIELDS.items() if field in fields]
        yield Remark(
            ((*path, field), (*path, "action")),
            f'says nothing to "{rung.action}"; it belongs to {" and ".join(owners)}',
        )
    if own and not any(field in given for field in own):
        others = f" (or {' or '.join(f'`{field}`' for field in own[1:])})" if own[1:] else ""
        yield Remark(((*path, own[0]), (*path, "action")), f'is missing{others}; "{rung.action}" needs it')
    if rung.action == "disable_thinking" and rung.pool and (rung.template_argument or rung.prompt_suffix):
        yield Remark(
            ((*path, "pool"), (*path, "template_argument"), (*path, "prompt_suffix")),
            "sends the request to another pool, so nothing is left to tell this one; accepted: one way of both",
        )


def _bounds(path: Path, rung: "Rung") -> Iterator[Remark]:
    signal, above = rung.entry.signal, rung.entry.above
    bound = (*path, "entry", "above")
    involved = (bound, (*path, "entry", "signal"))
    if above is None and signal != "queue_delay_seconds":
        yield Remark(involved, f"is missing; `{signal}` has no objective to stand in for it")
    if above == 0:
        hint = "; 0.5 is exceeded by the first one" if signal == "replicas_lost" else ""
        yield Remark(involved, f"0 leaves nothing to fall below, so that the rung would never be left again{hint}")
    if above is not None and above >= 1 and signal == "kv_used_ratio":
        yield Remark(involved, f"{above:g} is never exceeded by a share of the KV cache, so the rung is never entered")


def _sheds(rungs: tuple["Rung", ...]) -> Iterator[Remark]:
    """Yield interactive sheds that would come before work of less worth is stopped, or that stop nothing more."""
    stopped: set[PriorityClass] = set()
    shed: set[PriorityClass] = set()  # of all tenants
    for index, rung in enumerate(rungs):
        whole = set(rung.scope.classes) if rung.scope.tenants is None else set()
        path = ("rungs", index, "scope", "classes")
        if rung.action == "stop_bulk":
            stopped |= whole
        if rung.action != "shed_interactive":
            continue
        if stopped != set(CLASSES):
            yield Remark(
                (("rungs", index, "action"), path),
                "sheds interactive work while bulk is still admitted; a `stop_bulk` without a scope has to come before",
            )
        for again in [one for one in rung.scope.classes if one in shed]:
            yield Remark((path,), f'"{again}" is shed by an earlier rung already')
        shed |= whole
        highest = min(one.rank for one in rung.scope.classes)
        for lower in [one for one in CLASSES if one.rank > highest and one not in shed]:
            yield Remark(
                (path, ("rungs", index, "scope", "tenants")),
                f'leaves "{lower}" admitted, which is worth less; it has to be shed by this rung or an earlier one, of'
                " all tenants",
            )
