"""Ghosts of refused requests against a pool walked by hand: when they would have fit, and what teaches the estimate."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.admission.estimate.ghosts import MOST_PER_RANK, MOST_RAW_SECONDS, Followed, Ghosts
from llmshed.admission.request import SERVICE_RANKS


def test_a_ghost_would_have_fit_when_what_it_lacked_came_free() -> None:
    ghosts = Ghosts()
    assert ghosts.follow(0, 3.0, tokens=1_000, prompt_tokens=0, now=10.0)
    ghosts.came_free(999)
    assert ghosts.advance(11.0) == []
    ghosts.came_free(1)
    assert ghosts.advance(12.5) == [Followed(0, 3.0, 2.5)]
    assert (len(ghosts), ghosts.fitted, ghosts.given_up) == (0, 1, 0)


def test_work_of_a_higher_rank_goes_before_it_and_what_comes_later_in_its_own_does_not() -> None:
    ghosts = Ghosts()
    ghosts.follow(1, 3.0, tokens=1_000, prompt_tokens=0, now=0.0)
    ghosts.accepted(0, tokens=500, prompt_tokens=400)
    ghosts.accepted(1, tokens=9_000, prompt_tokens=8_000)
    ghosts.let_in(0, prompt_tokens=400)
    ghosts.came_free(1_000)
    assert ghosts.advance(1.0) == []
    ghosts.came_free(500)
    assert ghosts.advance(2.0) == [Followed(1, 3.0, 2.0)]


def test_higher_work_that_left_its_queue_is_in_nobodys_way() -> None:
    ghosts = Ghosts()
    ghosts.follow(1, 3.0, tokens=1_000, prompt_tokens=0, now=0.0)
    ghosts.accepted(0, tokens=500, prompt_tokens=400)
    ghosts.withdrawn(0, tokens=500, prompt_tokens=400)
    ghosts.came_free(1_000)
    assert ghosts.advance(1.0) == [Followed(1, 3.0, 1.0)]


def test_the_prompts_ahead_have_to_be_let_in_too() -> None:
    ghosts = Ghosts()
    ghosts.follow(1, 3.0, tokens=1_000, prompt_tokens=600, now=0.0)
    ghosts.came_free(1_000)
    ghosts.let_in(0, 300)
    ghosts.let_in(2, 9_000)  # of a lower rank: it went by on room that the ghost could not use
    assert ghosts.advance(1.0) == []
    ghosts.let_in(1, 300)
    assert ghosts.advance(2.0) == [Followed(1, 3.0, 2.0)]


def test_a_budget_that_shrinks_makes_it_wait_longer() -> None:
    ghosts = Ghosts()
    ghosts.follow(0, 3.0, tokens=1_000, prompt_tokens=0, now=0.0)
    ghosts.came_free(-500)
    ghosts.came_free(1_000)
    assert ghosts.advance(1.0) == []
    ghosts.came_free(500)
    assert len(ghosts.advance(2.0)) == 1


def test_one_that_never_fits_is_given_up_when_no_factor_could_have_covered_it() -> None:
    ghosts = Ghosts()
    ghosts.follow(0, 2.0, tokens=1, prompt_tokens=0, now=0.0)
    assert ghosts.advance(8.9) == []
    assert ghosts.advance(9.0) == [Followed(0, 2.0, 9.0)]  # 4 x 2 s + 1 s
    assert (len(ghosts), ghosts.fitted, ghosts.given_up) == (0, 0, 1)


def test_an_estimate_of_minutes_is_not_followed() -> None:
    ghosts = Ghosts()
    assert not ghosts.follow(0, MOST_RAW_SECONDS + 1.0, tokens=1, prompt_tokens=0, now=0.0)
    assert not ghosts.follow(0, float("inf"), tokens=1, prompt_tokens=0, now=0.0)
    assert len(ghosts) == 0


def test_a_rank_follows_so_many_and_no_more() -> None:
    ghosts = Ghosts()
    for _ in range(MOST_PER_RANK):
        assert ghosts.follow(0, 1.0, tokens=1, prompt_tokens=0, now=0.0)
    assert not ghosts.follow(0, 1.0, tokens=1, prompt_tokens=0, now=0.0)
    assert ghosts.follow(1, 1.0, tokens=2, prompt_tokens=0, now=0.0)
    ghosts.came_free(1)
    assert len(ghosts.advance(1.0)) == MOST_PER_RANK
    assert ghosts.follow(0, 1.0, tokens=1, prompt_tokens=0, now=1.0)


def test_what_is_over_does_not_pile_up() -> None:
    ghosts = Ghosts()
    for second in range(20_000):
        ghosts.follow(0, 100.0, tokens=1, prompt_tokens=0, now=second / 1_000)
        ghosts.came_free(1)
        ghosts.advance(second / 1_000)
    assert ghosts.fitted == 20_000
    heaps = (*ghosts._tokens, *ghosts._prompts, ghosts._times)
    assert max(map(len, heaps)) <= 4 * MOST_PER_RANK * SERVICE_RANKS + 1


@dataclass
class Alone:
    """One ghost followed alone: what it still waits for."""

    rank: int
    at: float
    tokens: int
    prompts: int
    enough: bool = False

    def feel(self, what: str, rank: int, tokens: int, prompts: int) -> None:
        if what == "free":
            self.tokens -= tokens
        elif what == "let_in" and rank <= self.rank:
            self.prompts -= prompts
        elif what == "accept" and rank < self.rank:
            self.tokens, self.prompts = self.tokens + tokens, self.prompts + prompts
        elif what == "withdraw" and rank < self.rank:
            self.tokens, self.prompts = self.tokens - tokens, self.prompts - prompts

    def over(self, now: float) -> bool:
        self.enough = self.enough or self.tokens <= 0
        return (self.enough and self.prompts <= 0) or now >= self.at + 5.0  # 4 x 1 s + 1 s


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["free", "accept", "withdraw", "let_in", "follow", "wait"]),
        st.integers(0, SERVICE_RANKS - 1),
        st.integers(0, 40),
        st.integers(0, 20),
    ),
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(events=EVENTS)
def test_each_ghost_ends_as_when_it_is_followed_alone(events: list[tuple[str, int, int, int]]) -> None:
    ghosts, now = Ghosts(), 0.0
    alone: list[Alone] = []
    for what, rank, tokens, prompts in events:
        for ghost in alone:
            ghost.feel(what, rank, tokens, prompts)
        match what:
            case "free":
                ghosts.came_free(tokens)
            case "accept":
                ghosts.accepted(rank, tokens, prompts)
            case "withdraw":
                ghosts.withdrawn(rank, tokens, prompts)
            case "let_in":
                ghosts.let_in(rank, prompts)
            case "follow":
                ghosts.follow(rank, 1.0, tokens, prompts, now)
                alone.append(Alone(rank, now, tokens, prompts))
            case _:
                now += tokens / 8
        over = [ghost for ghost in alone if ghost.over(now)]
        alone = [ghost for ghost in alone if ghost not in over]
        expected = sorted(Followed(ghost.rank, 1.0, now - ghost.at) for ghost in over)
        assert sorted(ghosts.advance(now)) == expected
        assert len(ghosts) == len(alone)
