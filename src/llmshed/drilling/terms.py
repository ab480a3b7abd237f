"""What the gateway tells a drill: the paths of a pool, the models that answer on them, and the pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from llmshed.errors import ExitCode, LlmshedError

PASS_HEADER = "x-llmshed-drill"  # noqa: S105 - the name of a header
RUNG_HEADER = "x-llmshed-drill-rung"
PRIMARY = "none"


class NothingToDrillError(LlmshedError):
    """The pool has no such rung, or none that changes answers."""

    exit_code = ExitCode.BAD_DATA


@dataclass(frozen=True, slots=True)
class Path:
    """One path.

    Args:
        rung: the rung; None for the primary path.
        terms: what is done to requests.
        actions: the same by the words of `x-llmshed-degraded`.
        pool: the pool that answers.
        largest_quality_gap: what was agreed on; None where nothing was.
    """

    rung: str | None
    terms: tuple[str, ...]
    actions: tuple[str, ...]
    pool: str
    largest_quality_gap: float | None


@dataclass(frozen=True, slots=True)
class Terms:
    """A drill's terms.

    Args:
        word: the pass.
        data: address of the data listener, as the gateway knows it.
        pool: the pool that is asked.
        ladder: name and version of its ladder.
        in_force: rungs that are in force now.
        evaluations: file of results; None where the ladder names none.
        models: model of each pool that answers.
        facts: what the replicas of each such pool tell of themselves.
        paths: the primary path, then the degraded ones.
    """

    word: str
    data: str
    pool: str
    ladder: str
    in_force: tuple[str, ...]
    evaluations: str | None
    models: Mapping[str, str]
    facts: Mapping[str, dict[str, str | int]]
    paths: tuple[Path, ...]

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Self:
        """Read what `/admin/ladder/drill` answers."""
        pool, pools = told["pool"], told["pools"]
        degraded = (
            Path(rung["name"], tuple(rung["terms"]), tuple(rung["actions"]), rung["pool"], rung["largest_quality_gap"])
            for rung in told["rungs"]
        )
        return cls(
            word=told["pass"],
            data=told["data"],
            pool=pool,
            ladder=told["ladder"],
            in_force=tuple(told["in_force"]),
            evaluations=told["evaluations"],
            models={name: one["model"] for name, one in pools.items()},
            facts={name: one["facts"] for name, one in pools.items()},
            paths=(Path(None, (), (), pool, None), *degraded),
        )

    @property
    def model(self) -> str:
        """Return the model that requests name."""
        return self.models[self.pool]

    def only(self, rungs: Sequence[str]) -> Self:
        """Return the terms with these degraded paths alone; with all of them where none is named.

        Raises:
            NothingToDrillError: a rung is not there, or there is none at all.
        """
        known = [path.rung for path in self.paths[1:]]
        accepted = ", ".join(f"`{rung}`" for rung in known)
        if not known:
            raise NothingToDrillError(f"no rung of ladder {self.ladder} changes answers: there is nothing to drill")
        for rung in rungs:
            if rung not in known:
                raise NothingToDrillError(f"--rung {rung}: ladder {self.ladder} changes answers by {accepted}")
        chosen = (path for path in self.paths[1:] if not rungs or path.rung in rungs)
        return replace(self, paths=(self.paths[0], *chosen))

    def headers(self, path: Path) -> dict[str, str]:
        """Return the headers by which a request takes a path."""
        return {PASS_HEADER: self.word, RUNG_HEADER: path.rung or PRIMARY}
