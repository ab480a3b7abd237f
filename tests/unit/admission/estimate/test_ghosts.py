"""Ghosts of refused requests before replicas walked by hand: when they would have fit."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from llmshed.admission.budget import Reservation
from llmshed.admission.estimate.ghosts import MOST_PER_RANK, MOST_RAW_SECONDS, Followed, Ghosts
from llmshed.admission.request import SERVICE_RANKS


@dataclass
class Walked:
    """Ghosts beside what is free on each replica, and whether its window is open."""

    ghosts: Ghosts = field(default_factory=Ghosts)
    free: dict[str, int] = field(default_factory=lambda: {"a": 0})
    closed: set[str] = field(default_factory=set)

    def come_free(self, tokens: int, replica: str = "a") -> None:
        self.free[replica] += tokens
        self.ghosts.came_free(replica, tokens)

    def dispatch(self, rank: int, tokens: int, now: float, replica: str = "a") -> None:
        self.free[replica] -= tokens
        self.ghosts.dispatched(replica, rank, tokens, now)

    def over(self, now: float) -> list[Followed]:
        return self.ghosts.advance(now, self.free.items, lambda name, *_: None if name in self.closed else now)


def sized(tokens: int) -> Reservation:
    return Reservation(tokens, 0, 0, 1)


def test_a_ghost_would_have_fit_when_what_it_lacked_came_free() -> None:
    walked = Walked(free={"a": 400})
    assert walked.ghosts.follow(0, 3.0, 3.0, sized(1_400), now=10.0)
    assert walked.over(10.0) == []
    walked.come_free(999)
    assert walked.over(11.0) == []
    walked.come_free(1)
    assert walked.over(12.5) == [Followed(0, 3.0, 3.0, 2.5)]
    assert (len(walked.ghosts), walked.ghosts.fitted, walked.ghosts.given_up) == (0, 1, 0)


def test_it_fits_on_whichever_replica_has_room_first_and_not_on_two_halves() -> None:
    walked = Walked(free={"a": 0, "b": 0})
    walked.ghosts.follow(0, 3.0, 3.0, sized(1_000), now=0.0)
    walked.over(0.0)
    walked.come_free(600, "a")
    walked.come_free(600, "b")
    assert walked.over(1.0) == []
    walked.come_free(400, "b")
    assert walked.over(2.0) == [Followed(0, 3.0, 3.0, 2.0)]


def test_who_waited_before_it_goes_first() -> None:
    """Of its own rank or a higher one; those of a lower one wait after it."""
    walked = Walked(free={"a": 5_000})
    walked.ghosts.joined(1, rank=1)
    walked.ghosts.joined(2, rank=0)
    walked.ghosts.joined(3, rank=4)
    walked.ghosts.follow(1, 3.0, 3.0, sized(1_000), now=0.0)
    walked.ghosts.joined(4, rank=0)
    assert walked.over(0.5) == []
    walked.ghosts.left(1, rank=1)
    assert walked.over(1.0) == []
    walked.ghosts.left(2, rank=0)
    assert walked.over(2.0) == [Followed(1, 3.0, 3.0, 2.0)]


def test_work_of_a_higher_rank_takes_what_came_free_and_that_of_its_own_does_not() -> None:
    walked = Walked()
    walked.ghosts.follow(1, 3.0, 3.0, sized(1_000), now=0.0)
    walked.over(0.0)
    walked.come_free(500)
    walked.dispatch(0, 500, 0.5)
    walked.come_free(500)
    assert walked.over(1.0) == []
    walked.dispatch(1, 500, 1.5)
    walked.come_free(500)
    assert walked.over(2.0) == [Followed(1, 3.0, 3.0, 2.0)]


def test_with_room_it_waits_for_the_window_or_for_another_that_is_let_in() -> None:
    for rank, fits in ((0, False), (1, True), (4, True)):
        walked = Walked(free={"a": 1_000}, closed={"a"})
        walked.ghosts.follow(1, 3.0, 3.0, sized(1_000), now=0.0)
        assert walked.over(1.0) == []
        walked.dispatch(rank, 10, 1.5)
        assert walked.over(2.0) == ([Followed(1, 3.0, 3.0, 1.5)] if fits else [])
        walked.closed.clear()
        assert walked.over(3.0) == ([] if fits else [Followed(1, 3.0, 3.0, 3.0)])


def test_a_budget_that_shrinks_makes_it_wait_longer() -> None:
    walked = Walked()
    walked.ghosts.follow(0, 3.0, 3.0, sized(1_000), now=0.0)
    walked.over(0.0)
    walked.come_free(-500)
    walked.come_free(1_000)
    assert walked.over(1.0) == []
    walked.come_free(500)
    assert len(walked.over(2.0)) == 1


def test_a_replica_that_is_gone_is_no_place_for_it() -> None:
    walked = Walked(free={"a": 0, "b": 0})
    walked.ghosts.follow(0, 3.0, 3.0, sized(1_000), now=0.0)
    walked.over(0.0)
    walked.ghosts.forget("a")
    walked.come_free(1_000, "a")
    assert walked.over(1.0) == []
    walked.come_free(1_000, "b")
    assert len(walked.over(2.0)) == 1


def test_one_that_never_fits_is_given_up_when_no_factor_could_have_covered_it() -> None:
    walked = Walked()
    walked.ghosts.follow(0, 2.0, 2.0, sized(1), now=0.0)
    assert walked.over(8.9) == []
    assert walked.over(9.0) == [Followed(0, 2.0, 2.0, 9.0)]  # 4 x 2 s + 1 s
    assert (len(walked.ghosts), walked.ghosts.fitted, walked.ghosts.given_up) == (0, 0, 1)
    walked.come_free(1)
    assert walked.over(9.5) == []


def test_an_estimate_of_minutes_is_not_followed() -> None:
    ghosts = Ghosts()
    assert not ghosts.follow(0, MOST_RAW_SECONDS + 1.0, MOST_RAW_SECONDS + 1.0, sized(1), now=0.0)
    assert not ghosts.follow(0, float("inf"), float("inf"), sized(1), now=0.0)
    assert len(ghosts) == 0


def test_a_rank_follows_so_many_and_no_more() -> None:
    walked = Walked()
    for _ in range(MOST_PER_RANK):
        assert walked.ghosts.follow(0, 1.0, 1.0, sized(1), now=0.0)
    assert not walked.ghosts.follow(0, 1.0, 1.0, sized(1), now=0.0)
    assert walked.ghosts.follow(1, 1.0, 1.0, sized(2), now=0.0)
    walked.over(0.0)
    walked.come_free(1)
    assert len(walked.over(1.0)) == MOST_PER_RANK
    assert walked.ghosts.follow(0, 1.0, 1.0, sized(1), now=1.0)


def test_what_is_over_does_not_pile_up() -> None:
    walked = Walked(free={"a": 0, "b": 0})
    for second in range(10_000):
        walked.ghosts.follow(0, 100.0, 100.0, sized(1), now=second / 1_000)
        walked.over(second / 1_000)
        walked.come_free(1)
        walked.over(second / 1_000)
        walked.dispatch(0, 1, second / 1_000)
    assert walked.ghosts.fitted == 10_000
    heaps = (walked.ghosts._times, *(line.targets for lines in walked.ghosts._lines.values() for line in lines))
    assert max(map(len, heaps)) <= 2 * MOST_PER_RANK * SERVICE_RANKS


def test_nothing_piles_up_behind_one_who_waits_for_hours_nor_before_a_window_that_stays_closed() -> None:
    """Estimates of nothing are given up after a second, so 64 a second come and go."""
    walked = Walked(free={"a": 10, "b": 10}, closed={"a", "b"})
    walked.ghosts.joined(1, rank=0)
    for second in range(300):
        for rank in (0, 1):
            while walked.ghosts.follow(rank, 0.0, 0.0, sized(1), float(second)):
                pass
        if second == 150:
            walked.ghosts.left(1, rank=0)
        walked.over(float(second))
    lines = [line for lines in walked.ghosts._lines.values() for line in lines]
    held = [len(behind) for behind in walked.ghosts._behind]
    held += [max(len(line.with_room), len(line.targets)) for line in lines]
    assert max(held) <= 2 * MOST_PER_RANK + 1
    assert walked.ghosts.given_up == 2 * MOST_PER_RANK * 150


def test_one_that_time_alone_lets_in_ends_at_that_instant_whenever_somebody_looks() -> None:
    walked = Walked(free={"a": 10})
    opens_at = {3: 2.0, 5: 2.5}  # by size

    def takes_at(_name: str, _rank: int, reservation: Reservation, at: float) -> float:
        return max(at, opens_at[reservation.total_tokens])

    for tokens in (3, 5):
        walked.ghosts.follow(0, 100.0, 100.0, sized(tokens), 0.0)
    assert walked.ghosts.advance(0.0, walked.free.items, takes_at) == []
    over = walked.ghosts.advance(300.0, walked.free.items, takes_at)
    assert [ghost.actual_seconds for ghost in over] == [2.0, 2.5]


def test_the_last_place_that_goes_takes_the_ghost_along_and_teaches_nothing() -> None:
    """Nobody knows how long it would have waited there; one that still waits behind others finds its place later."""
    walked = Walked(free={"a": 0})
    walked.ghosts.follow(0, 1.0, 1.0, sized(1_000), 0.0)
    walked.over(0.0)
    walked.ghosts.joined(1, rank=0)
    walked.ghosts.follow(0, 1.0, 1.0, sized(1_000), 0.0)
    walked.ghosts.forget("a")
    assert len(walked.ghosts) == 1
    walked.come_free(1_000)
    assert walked.over(1.0) == []
    walked.ghosts.left(1, rank=0)
    assert walked.over(2.0) == [Followed(0, 1.0, 1.0, 2.0)]
    walked.ghosts.follow(0, 1.0, 1.0, sized(1), 3.0)
    walked.free.clear()
    assert walked.over(9.0) == []
    assert (len(walked.ghosts), walked.ghosts.fitted, walked.ghosts.given_up) == (0, 1, 0)


@dataclass
class Alone:
    """One ghost followed alone: whom it is behind, what it still lacks on each replica, where it has room."""

    rank: int
    at: float
    tokens: int
    behind: set[int]
    lacks: dict[str, int] | None = None
    let_in: bool = False

    def feel(self, what: str, replica: str, rank: int, tokens: int) -> None:
        if self.lacks is None:
            return
        if what == "dispatch" and rank >= self.rank and self.lacks[replica] <= 0:
            self.let_in = True
        if what == "free":
            self.lacks[replica] -= tokens
        elif what == "dispatch" and rank < self.rank:
            self.lacks[replica] += tokens

    def over(self, now: float, free: dict[str, int], closed: set[str], waiting: set[int]) -> bool:
        if self.lacks is None and not self.behind & waiting:
            self.lacks = {name: self.tokens - tokens for name, tokens in free.items()}
        if self.lacks is not None and any(lack <= 0 and name not in closed for name, lack in self.lacks.items()):
            return True
        return self.let_in or now >= self.at + 5.0  # 4 x 1 s + 1 s


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["free", "dispatch", "join", "leave", "follow", "window", "wait"]),
        st.sampled_from(["a", "b"]),
        st.integers(0, SERVICE_RANKS - 1),
        st.integers(0, 40),
    ),
    max_size=40,
)


@settings(max_examples=80, deadline=None)
@given(events=EVENTS)
def test_each_ghost_ends_as_when_it_is_followed_alone(  # noqa: C901 - one flat case an event
    events: list[tuple[str, str, int, int]],
) -> None:
    """One that has room keeps it, so in this walk higher ranks take tokens only while nobody has any."""
    walked, now = Walked(free={"a": 0, "b": 0}), 0.0
    alone: list[Alone] = []
    waiting: dict[int, int] = {}
    for key, (what, replica, rank, tokens) in enumerate(events):
        match what:
            case "free":
                walked.come_free(tokens, replica)
                for ghost in alone:
                    ghost.feel(what, replica, rank, tokens)
            case "dispatch":
                settled = all(ghost.lacks is None or min(ghost.lacks.values()) > 0 for ghost in alone)
                if settled or rank == SERVICE_RANKS - 1:
                    for ghost in alone:
                        ghost.feel(what, replica, rank, tokens)
                    walked.dispatch(rank, tokens, now, replica)
            case "join":
                waiting[key] = rank
                walked.ghosts.joined(key, rank)
            case "leave" if waiting:
                gone = sorted(waiting)[tokens % len(waiting)]
                walked.ghosts.left(gone, waiting.pop(gone))
            case "follow":
                walked.ghosts.follow(rank, 1.0, 1.0, sized(tokens), now)
                alone.append(Alone(rank, now, tokens, {one for one, other in waiting.items() if other <= rank}))
            case "window":
                walked.closed ^= {replica}
            case _:
                now += tokens / 8
        over = [ghost for ghost in alone if ghost.over(now, walked.free, walked.closed, set(waiting))]
        alone = [ghost for ghost in alone if ghost not in over]
        assert sorted(walked.over(now)) == sorted(Followed(ghost.rank, 1.0, 1.0, now - ghost.at) for ghost in over)
        assert len(walked.ghosts) == len(alone)
