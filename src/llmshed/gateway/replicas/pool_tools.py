"""What a pool needs before a replica of it can serve: the counter of its tokenizer, and its profile."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from llmshed.config.addresses import SIMULATED
from llmshed.config.counting import CountingSettings
from llmshed.config.pools import PoolSettings
from llmshed.config.settings import Config
from llmshed.gateway.profile_file import read_profile, simulated_profile
from llmshed.profile import Profile
from llmshed.profile.thresholds import differing_thresholds
from llmshed.tokenizing.base import PromptCounter
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.load import EMBEDDED, find
from llmshed.tokenizing.trial import try_template

_log = logging.getLogger(__name__)

SIMULATED_MODEL = "llmshed/simulated"
"""Model id that a simulated replica tells; its tokenizer is the package's own."""


@dataclass(frozen=True, slots=True)
class CounterRecipe:
    """Everything that a counter is made from: equal recipes make equal counters, so a reload need not load again."""

    place: str
    engine: str
    image_tokens: int | None
    cache_bytes: int
    fastokens: bool

    @classmethod
    def of(cls, pool: PoolSettings, counting: CountingSettings, model_id: str) -> Self:
        """Return the recipe for a pool whose engine tells `model_id`."""
        place = pool.tokenizer
        if place == "auto":
            place = EMBEDDED if model_id == SIMULATED_MODEL else model_id
        return cls(place, pool.engine, pool.image_tokens, counting.cache_bytes, counting.fastokens)


CounterLoader = Callable[[CounterRecipe], PromptCounter]
"""Makes a counter; blocks, for minutes when the tokenizer comes from the hub. Raises TokenizerError."""


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """What the replicas of a pool are run by: when any of it changes, each is met anew."""

    settings: PoolSettings
    config: Config
    profile: Profile | None

    @classmethod
    def of(cls, pool: PoolSettings, config: Config) -> Self:
        """Return the plan for a pool of a configuration.

        Raises:
            ProfileError: the profile cannot be read, or breaks its schema.
        """
        return cls(pool, config, load_profile(pool))

    def same_as(self, other: Self) -> bool:
        """Say whether a replica that runs by one plan may go on under the other."""
        return (
            self._of_replicas() == other._of_replicas()
            and self.profile == other.profile
            and self.config.counting == other.config.counting
            and self.config.admission.guard_band_ratio == other.config.admission.guard_band_ratio
        )

    def _of_replicas(self) -> dict[str, object]:
        return self.settings.model_dump(exclude={"replicas", "lanes", "aliases"})


def counter_loader(block_key: bytes, on_fast_mismatch: Callable[[], None]) -> CounterLoader:
    """Return the loader of the daemon.

    Args:
        block_key: the secret that prompt blocks are hashed with.
        on_fast_mismatch: is told, in any thread, that fastokens counted otherwise and was dropped.
    """

    def dropped(sentence: str) -> None:
        _log.error("fastokens_dropped", extra={"detail": sentence})
        on_fast_mismatch()

    def load(recipe: CounterRecipe) -> PromptCounter:
        if recipe.engine != "tgi":
            raise ValueError(f"no counter for engine {recipe.engine}")
        files = find(recipe.place)
        for note in files.notes("tgi"):
            _log.warning("tokenizer_note", extra={"note": note})
        if files.source != EMBEDDED:
            try_template(files, "tgi")
        return build_counter(
            files,
            "tgi",
            cache_bytes=recipe.cache_bytes,
            fastokens=recipe.fastokens,
            on_fast_mismatch=dropped,
            block_key=block_key,
            image_tokens=recipe.image_tokens,
        )

    return load


def load_profile(pool: PoolSettings) -> Profile | None:
    """Return the profile that the pool names; a pool of simulated replicas has the package's own.

    Raises:
        ProfileError: the file cannot be read, or breaks its schema.
    """
    if pool.profile is not None:
        return read_profile(Path(pool.profile))
    if all(replica.url == SIMULATED for replica in pool.replicas):
        return simulated_profile()
    return None


def warn_of_thresholds(plan: PoolPlan) -> None:
    """Log where the lanes' thresholds and objectives are not those that the pool's profile was made for."""
    if plan.profile is not None:
        lanes = plan.config.lanes
        for sentence in differing_thresholds(plan.profile, lanes.interactive, lanes.bulk):
            _log.warning("thresholds_differ", extra={"pool": plan.settings.name, "detail": sentence})


class CounterShelf:
    """Counters by their recipes: each is loaded once, off the loop, whoever asks first."""

    def __init__(self, load: CounterLoader) -> None:
        """Load with `load`, which blocks."""
        self._load = load
        self._counters: dict[CounterRecipe, PromptCounter] = {}
        self._locks: defaultdict[CounterRecipe, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def get(self, recipe: CounterRecipe) -> PromptCounter:
        """Return the counter of a recipe.

        Raises:
            TokenizerError: it cannot be loaded; the next call tries again.
        """
        async with self._locks[recipe]:
            if recipe not in self._counters:
                self._counters[recipe] = await asyncio.to_thread(self._load, recipe)
            return self._counters[recipe]

    def keep_only(self, used: Iterable[PromptCounter]) -> None:
        """Forget every counter that is not used: reloads must not pile up tokenizers."""
        kept = {id(counter) for counter in used}
        self._counters = {recipe: counter for recipe, counter in self._counters.items() if id(counter) in kept}
