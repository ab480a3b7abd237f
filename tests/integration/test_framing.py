"""Doubtful framings at the data listener: each is read in one way, in one piece or byte by byte, or not at all."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from fakes.ears import Ears
from fakes.framing import BEHIND, Case, own_cases, reference_cases
from fakes.house import House, house
from fakes.wire import Answer, answers, talk

CUTS = [pytest.param(1 << 20, id="in one piece"), pytest.param(1, id="byte by byte", marks=pytest.mark.slow)]
LARGE = 2_500
"""Bytes from which a payload is cut into pieces of some hundred bytes instead of single ones."""


@pytest.fixture
async def gate() -> AsyncIterator[House]:
    async with house() as running:
        yield running


@pytest.mark.parametrize("cut", CUTS)
async def test_the_reference_payloads_have_one_reading(
    gate: House, data_dir: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    cases = list(reference_cases(data_dir))
    assert len(cases) == 62
    await _hold(gate, Ears(monkeypatch), cases, cut)


@pytest.mark.parametrize("cut", CUTS)
async def test_further_framings_have_one_reading(gate: House, monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    await _hold(gate, Ears(monkeypatch), own_cases(), cut)


async def _hold(gate: House, ears: Ears, cases: Iterable[Case], cut: int) -> None:
    """Send each case on a connection of its own, a plain request behind it, and compare all readings at once.

    A request that ends its connection may be refused when more comes along with it: nobody may send that.
    """
    found: dict[str, object] = {}
    expected: dict[str, object] = {}
    for case in cases:
        *pieces, last = case.pieces(cut if len(case.payload) < LARGE else max(cut, 997))
        parts = [*pieces, last, BEHIND] if pieces else [last + BEHIND]
        told = tuple(_told(answer) for answer in answers(await talk(gate.port, *parts)))
        found[case.name], expected[case.name] = (ears.take(), told), (case.seen, case.answers)
        if case.ends and not pieces and told == ("refused",):
            expected[case.name] = ((), told)
    assert found == expected


def _told(answer: Answer) -> str:
    """Say what an answer tells; a refusal counts only if it is whole and under the contract."""
    if (answer.status, answer.body) == (200, b"read"):
        return "read"
    assert answer.field("server") is None
    assert answer.field("content-type") == "application/json"
    assert answer.json()["code"] == answer.reason
    refused = (answer.status, answer.reason) in {(400, "malformed"), (431, "headers_too_large")}
    return "refused" if refused else f"{answer.status} {answer.reason}"
