"""Counters of the reference tokenizers, each built once."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.counter import ExactCounter
from llmshed.tokenizing.files import EngineName
from llmshed.tokenizing.load import from_directory


@pytest.fixture(scope="session")
def counter_of(tokenizer_directory: Callable[[str], Path]) -> Callable[[str, EngineName], ExactCounter]:
    """Returns the counter of a reference tokenizer for an engine; templates see 2 January 2025, 03:04:05."""

    @cache
    def build(name: str, engine: EngineName) -> ExactCounter:
        return build_counter(from_directory(tokenizer_directory(name)), engine, now=fixed_time)

    return build


def fixed_time() -> datetime:
    return datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
