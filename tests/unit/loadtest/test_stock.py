"""Texts kept ready by size: each given out once, of the size that was asked for."""

import asyncio

from fakes.replaying import embedded_prompts
from llmshed.loadtest.stock import SPARE_TEXTS, Stock
from llmshed.workload.asks import Ask


def ask(tokens: int, prefix_tokens: int = 0) -> Ask:
    return Ask("a", tokens, 1, runs_to_ceiling=True, lane=None, prefix_tokens=prefix_tokens)


async def test_texts_are_of_the_size_that_was_asked_for_and_never_the_same() -> None:
    prompts = embedded_prompts()
    stock = Stock(prompts)
    texts = [await stock.text(ask(tokens)) for tokens in (30, 40, 30, 30, 40, 30, 30, 30, 30)]
    assert [prompts.count(text) for text in texts] == [30, 40, 30, 30, 40, 30, 30, 30, 30]
    assert len(set(texts)) == len(texts)
    await stock.close()


async def test_prefixes_are_part_of_the_size() -> None:
    stock = Stock(embedded_prompts())
    first, second, third = [await stock.text(ask(60, 20)), await stock.text(ask(60, 20)), await stock.text(ask(60))]
    assert first.split(" ")[:20] == second.split(" ")[:20] != third.split(" ")[:20]
    await stock.close()


async def test_spare_texts_are_made_until_there_are_enough_and_closing_ends_that() -> None:
    stock = Stock(embedded_prompts())
    await stock.text(ask(30))
    async with asyncio.timeout(10):
        while sum(map(len, stock._texts.values())) < SPARE_TEXTS:  # noqa: ASYNC110 - made in a thread
            await asyncio.sleep(0.002)
    await asyncio.sleep(0.01)
    assert stock._made == SPARE_TEXTS + 1
    await stock.close()
    assert not stock._refills
