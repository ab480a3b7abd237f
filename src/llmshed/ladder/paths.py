"""Which rungs change what a request is answered: the degraded path that a rung stands for, and what is done on it."""

from llmshed.ladder.model import Ladder, Rung, RungAction, Scope


def changing(ladder: Ladder) -> tuple[Rung, ...]:
    """Return the rungs that change answers, each of which is worth an evaluation of its own."""
    return tuple(rung for rung in ladder.rungs if rung.action.changes_answers)


def path_of(ladder: Ladder, rung: Rung) -> tuple[Rung, ...]:
    """Return what somebody may meet while `rung` is the highest in force: it, and those below that touch the same.

    That is the worst that it does to anybody, which is what its agreed gap is held against.
    """
    number = ladder.rung_number(rung.name) or 0
    below = (lower for lower in ladder.rungs[: number - 1] if lower.action.changes_answers)
    return (*(lower for lower in below if _meet(lower.scope, rung.scope)), rung)


def target_of(path: tuple[Rung, ...]) -> str | None:
    """Return the pool that answers on a path; None where it is the one that the request came to."""
    return next((rung.pool for rung in reversed(path) if rung.pool is not None), None)


def terms_of(path: tuple[Rung, ...]) -> tuple[str, ...]:
    """Return what is done to a request on a path, in words that differ whenever that does."""
    return tuple(_terms(rung) for rung in path)


def _meet(one: Scope, other: Scope) -> bool:
    """Say whether a request may be in both scopes."""
    tenants = one.tenants is None or other.tenants is None or bool(set(one.tenants) & set(other.tenants))
    return tenants and bool(set(one.classes) & set(other.classes))


def _terms(rung: Rung) -> str:
    match rung.action:
        case RungAction.CAP_OUTPUT:
            return f"{rung.action} {rung.max_output_tokens}"
        case RungAction.SHRINK_CONTEXT:
            return f"{rung.action} {rung.drop_share:g}"
        case RungAction.SMALLER_MODEL:
            return f"{rung.action} {rung.pool}"
        case RungAction.DISABLE_THINKING:
            how = rung.template_argument or rung.prompt_suffix or rung.pool
            return f"{rung.action} {how}"
        case _:
            return str(rung.action)
