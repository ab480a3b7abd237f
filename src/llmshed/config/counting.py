"""Settings of token counting."""

from typing import Annotated

from pydantic import Field

from llmshed.config.base import Settings

Bytes = Annotated[int, Field(ge=1, le=2**40)]


class CountingSettings(Settings):
    """`[counting]`: how prompts are counted without stopping the event loop."""

    threads: Annotated[int, Field(ge=1, le=64)] = 2
    """Threads that count."""
    # A hand-over costs 0.1 to 0.2 ms, a tenth of counting 2 KiB of prose. Text whose every character is a piece of its
    # own takes up to six times as long and holds the event loop meanwhile: 5 ms for 2 KiB, 15 for 4.
    inline_bytes: Annotated[int, Field(ge=0, le=2**40)] = 2048
    """Prompts up to this size are counted at once, since a hand-over would cost more."""
    small_bytes: Bytes = 65_536
    """Prompts up to this size go through the small queue, which is served first."""
    small_queue_bytes: Bytes = 8_388_608
    """Most bytes that wait or run in the small queue; beyond it is `counting_backlog`."""
    large_queue_bytes: Bytes = 67_108_864
    """Most bytes that wait or run in the large queue; beyond it is `counting_backlog`."""
    cache_bytes: Annotated[int, Field(ge=0, le=2**40)] = 67_108_864
    """Size of the cache of segment counts; 0 switches it off."""
    fastokens: bool = False
    """Count with fastokens (extra `fast`) where it proves equal at start and in live samples."""
