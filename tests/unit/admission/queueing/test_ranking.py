import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.admission.queueing.ranking import Ranking


@pytest.fixture
def ranking() -> Ranking:
    ranking = Ranking()
    for name, key in (("b", (2.0,)), ("a", (2.0,)), ("c", (1.0,))):
        ranking.place(name, key)
    return ranking


def test_least_key_first_and_equal_keys_by_name(ranking: Ranking) -> None:
    assert [name for _, name in ranking] == ["c", "a", "b"]
    assert ranking.first() == ((1.0,), "c")
    assert ranking.first(other_than="c") == ((2.0,), "a")
    assert ranking.first(other_than="a") == ((1.0,), "c")


def test_a_name_has_one_place(ranking: Ranking) -> None:
    ranking.place("c", (3.0,))
    assert [name for _, name in ranking] == ["a", "b", "c"]
    assert ranking.key_of("c") == (3.0,)
    ranking.discard("a")
    ranking.discard("a")
    assert [name for _, name in ranking] == ["b", "c"]
    assert (ranking.key_of("a"), len(ranking)) == (None, 2)


def test_one_alone_has_no_other(ranking: Ranking) -> None:
    ranking.discard("a")
    ranking.discard("b")
    assert ranking.first(other_than="c") is None


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.none() | st.integers(0, 3))))
def test_it_is_a_sorted_dictionary(steps: list[tuple[str, int | None]]) -> None:
    ranking, plain = Ranking(), dict[str, tuple[float, ...]]()
    for name, key in steps:
        if key is None:
            ranking.discard(name)
            plain.pop(name, None)
        else:
            ranking.place(name, (float(key),))
            plain[name] = (float(key),)
        assert list(ranking) == sorted((value, key) for key, value in plain.items())
        assert ranking.check() == []


@pytest.mark.parametrize("damage", ["order", "keys"])
def test_check_sees_damage(ranking: Ranking, damage: str) -> None:
    if damage == "order":
        ranking._entries.reverse()
    else:
        ranking._keys["z"] = (1.0,)
    assert len(ranking.check()) == 1
