"""The thresholds and objectives of the lanes: what a profile was made for beside what a configuration asks for."""

import json
from collections.abc import Iterator
from hashlib import blake2b

from llmshed.config.lanes import BulkThresholds, InteractiveThresholds
from llmshed.profile.model import Profile


def thresholds_version(interactive: InteractiveThresholds, bulk: BulkThresholds) -> str:
    """Return a short name for these thresholds and objectives: the same ones have the same name everywhere.

    What a lane has beside them, its queue say, is left out.
    """
    told = {
        "interactive": interactive.model_dump(include=set(InteractiveThresholds.model_fields)),
        "bulk": bulk.model_dump(include=set(BulkThresholds.model_fields)),
    }
    return blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=6).hexdigest()


def profile_thresholds_version(profile: Profile) -> str:
    """Return that name for what a profile was made for."""
    return thresholds_version(profile.lanes.interactive, profile.lanes.bulk)


def differing_thresholds(profile: Profile, interactive: InteractiveThresholds, bulk: BulkThresholds) -> Iterator[str]:
    """Yield a sentence for each threshold that a profile states and that is another one here."""
    for lane, made_for, here in (
        ("interactive", profile.lanes.interactive, interactive),
        ("bulk", profile.lanes.bulk, bulk),
    ):
        for name in type(made_for).model_fields:
            stated, value = getattr(made_for, name), getattr(here, name)
            if name in made_for.model_fields_set and stated != value:
                yield f"lanes.{lane}.{name} is {_shown(value)}; profile {profile.label} was made for {_shown(stated)}"


def _shown(value: float | None) -> str:
    return "unset" if value is None else f"{value:,}"
