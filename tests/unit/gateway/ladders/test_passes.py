from llmshed.gateway.ladders.passes import MOST_PASSES, VALID_SECONDS, Passes


def test_a_pass_holds_for_its_time_and_no_other_word_does() -> None:
    passes = Passes()
    word = passes.draw(100.0)
    assert passes.holds(word, 100.0)
    assert passes.holds(word, 99.9 + VALID_SECONDS)
    assert not passes.holds(word, 100.0 + VALID_SECONDS)
    assert not any(passes.holds(other, 100.0) for other in ("", word[:-1], word + "x", "\udcff"))


def test_passes_differ_and_the_oldest_gives_way() -> None:
    passes = Passes()
    words = [passes.draw(0.0) for _ in range(MOST_PASSES + 2)]
    assert len(set(words)) == len(words)
    assert [passes.holds(word, 1.0) for word in words] == [False] * 2 + [True] * MOST_PASSES


def test_a_pass_cannot_be_guessed() -> None:
    assert len(Passes().draw(0.0)) >= 32  # of 64 letters: 192 bits
