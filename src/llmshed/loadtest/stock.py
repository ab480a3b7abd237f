"""Texts kept ready for asks whose sizes are only known when they are due.

A closed loop says what to send at the instant at which it is to go out, and a text takes a millisecond to make for each
thousand of its tokens. Its asks come in few sizes, so spare texts of the sizes that were asked for are kept.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from llmshed.loadtest.prompts import PromptMaker, shared_parts

if TYPE_CHECKING:
    from llmshed.workload.asks import Ask

SPARE_TEXTS: Final = 4
MOST_SIZES: Final = 256
"""Sizes that texts are kept for; those beyond are made when they are due."""

_Size = tuple[int, int, int]


class Stock:
    """Texts by size, each given out once; `close` ends what is being made.

    Args:
        prompts: what makes them; used in one thread at a time.
    """

    def __init__(self, prompts: PromptMaker) -> None:
        self._prompts = prompts
        self._texts: dict[_Size, deque[str]] = {}
        self._making = asyncio.Lock()
        self._refills: set[asyncio.Task[None]] = set()
        self._made = 0

    async def text(self, ask: "Ask") -> str:
        """Return a text of the size of an ask that nobody else got.

        Raises:
            PromptError: it cannot be made.
        """
        texts = self._texts.get(_size(ask))
        text = texts.popleft() if texts else await self._make(ask)
        self._refill(ask)
        return text

    async def close(self) -> None:
        """Make no more texts."""
        for task in self._refills:
            task.cancel()
        await asyncio.gather(*self._refills, return_exceptions=True)

    async def _make(self, ask: "Ask") -> str:
        async with self._making:
            self._made += 1
            name, parts = f"stock/{self._made}", shared_parts(ask)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(None, self._prompts.text, name, ask.input_tokens, parts)

    def _refill(self, ask: "Ask") -> None:
        size = _size(ask)
        if size not in self._texts and len(self._texts) < MOST_SIZES:
            self._texts[size] = deque()
        texts = self._texts.get(size)
        if texts is not None and len(texts) < SPARE_TEXTS:
            task = asyncio.get_running_loop().create_task(self._add(ask, texts))
            self._refills.add(task)
            task.add_done_callback(self._refills.discard)

    async def _add(self, ask: "Ask", texts: deque[str]) -> None:
        while len(texts) < SPARE_TEXTS:
            texts.append(await self._make(ask))


def _size(ask: "Ask") -> _Size:
    return ask.input_tokens, ask.prefix_tokens, ask.prefix_group
