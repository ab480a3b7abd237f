from llmshed.routing.choose import Candidate, most_headroom


def test_no_candidate_is_no_choice() -> None:
    assert most_headroom([]) is None


def test_tokens_decide_then_seats_then_the_name() -> None:
    low, high = Candidate("a", 10, 99), Candidate("b", 11, 1)
    assert most_headroom([low, high]) == high
    assert most_headroom([Candidate("a", 10, 1), Candidate("b", 10, 2)]) == Candidate("b", 10, 2)
    same = [Candidate("b", 10, 1), Candidate("a", 10, 1)]
    assert most_headroom(same) == most_headroom(reversed(same)) == Candidate("a", 10, 1)
