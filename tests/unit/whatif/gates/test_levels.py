"""The levels of the oracle, and the choice between them."""

import pytest

from fakes.stages import GPU, stage
from llmshed.whatif.gates.levels import OracleLevel, best_oracle, highest_level, oracle_levels


def test_the_highest_level_is_what_the_kv_holds_and_the_others_halve_at_every_second() -> None:
    most = GPU.usable_blocks * GPU.block_tokens
    assert highest_level(stage()).tokens == most
    levels = oracle_levels(stage(), steps=5)
    assert sorted({level.tokens for level in levels}) == [
        most // 4, int(most / 8**0.5), most // 2, int(most / 2**0.5), most,
    ]  # fmt: skip
    assert {(level.reserve_ratio, level.worth_ratio) for level in levels} == {
        (0.0, 0.0), (0.4, 0.0), (0.4, 0.4), (0.4, 0.5), (0.4, 0.7),
    }  # fmt: skip
    assert len(levels) == 25


def test_the_best_level_has_the_greatest_goodput_and_of_equals_is_the_lowest() -> None:
    goodput = {10: 1.0, 20: 5.0, 30: 5.0, 40: 2.0}
    tried: list[int] = []

    def run(level: OracleLevel) -> str:
        tried.append(level.tokens)
        return str(level.tokens)

    levels = [OracleLevel(tokens) for tokens in (40, 20, 30, 10, 20)]
    assert best_oracle(levels, run, lambda told: goodput[int(told)]) == (OracleLevel(20), "20")
    assert tried == [10, 20, 30, 40], "each once"


def test_no_levels_have_no_best() -> None:
    with pytest.raises(ValueError, match="no level to try"):
        best_oracle([], lambda level: level, lambda _level: 0.0)


@pytest.mark.parametrize(("tokens", "reserve"), [(0, 0.0), (-1, 0.0), (1, 1.0), (1, -0.1), (1, float("nan"))])
def test_a_level_that_lets_nothing_through_is_refused(tokens: int, reserve: float) -> None:
    with pytest.raises(ValueError, match="accepted are"):
        OracleLevel(tokens, reserve)


@pytest.mark.parametrize("worth", [-0.1, float("nan")])
def test_a_worth_that_means_nothing_is_refused(worth: float) -> None:
    with pytest.raises(ValueError, match="accepted are 0 and more"):
        OracleLevel(1, 0.4, worth)
