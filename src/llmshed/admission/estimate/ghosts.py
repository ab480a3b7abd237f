"""Refused requests that are followed until they would have fit, so that the estimate learns from refusals too.

An estimate that is too long refuses what could have been served, and what is refused shows no wait: without ghosts the
error would feed itself. A ghost of rank r that needs n reserved tokens passes three stages, each at once if it may:

    behind      until all of ranks up to r who waited when it was refused have left the queue
    room        until on some replica n tokens are free, were those of its own and of lower ranks away that were
                dispatched since it was first in the queue
    turn        until that replica takes it, by its seats, the part of its lane and the window of prompts, or has taken
                another of its own or a lower rank

For the second stage each replica keeps per rank a running total

    gained(r)   tokens that came free - tokens of work of higher ranks that was dispatched

and a ghost has room where that has grown by what it lacked there. What came after it would have been served after it
and counts nowhere. A replica that comes up later is no place for it, and one whose last place is gone shows nothing.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import NamedTuple

from llmshed.admission.budget import Reservation
from llmshed.admission.estimate.factor import MOST_FACTOR
from llmshed.admission.request import SERVICE_RANKS

MOST_PER_RANK = 64
"""How many ghosts of a rank are followed at once; a refusal beyond that is not followed."""
SLACK_SECONDS = 1.0
"""A ghost is given up at `MOST_FACTOR` x its estimate + this, when no factor could have covered its wait any more."""
MOST_RAW_SECONDS = 150.0
"""Longest estimate that is followed: beyond it a ghost would be over after ten minutes, too late to teach."""

Room = Iterable[tuple[str, int]]
"""Replicas that are up, each with the tokens that are free there."""
TakesAt = Callable[[str, int, Reservation, float], float | None]
"""When a replica takes what has its tokens there: asked with its name, the rank, the reservation and an instant.

That instant, if it takes it then; a later one at which to ask again; None while time alone changes nothing.
"""
_Targets = list[tuple[float, int]]


class Followed(NamedTuple):
    """A ghost that is over: its estimate with a factor of 1 and as told, and how long it would have waited at least."""

    rank: int
    raw_seconds: float
    told_seconds: float
    actual_seconds: float


class _Ghost(NamedTuple):
    rank: int
    raw_seconds: float
    told_seconds: float
    refused_at: float
    reservation: Reservation


@dataclass(slots=True)
class _Line:
    """The ghosts of one rank before one replica: targets of `gained`, and who has room and no start yet.

    `ask_at` is when time alone may give the first of these its start.
    """

    gained: int = 0
    targets: _Targets = field(default_factory=list)
    with_room: deque[int] = field(default_factory=deque)
    ask_at: float | None = None


class Ghosts:
    """The ghosts of one pool; `fitted` and `given_up` count those that are over."""

    __slots__ = (
        "_alive",
        "_behind",
        "_lines",
        "_number",
        "_of_rank",
        "_over",
        "_times",
        "_waiting",
        "fitted",
        "given_up",
    )

    def __init__(self) -> None:
        """Follow nobody."""
        self._number = 0  # of refusals and of who joined the queue, in their order
        self._waiting: list[OrderedDict[int, int]] = [OrderedDict() for _ in range(SERVICE_RANKS)]
        self._alive: dict[int, _Ghost] = {}
        self._of_rank = [0] * SERVICE_RANKS
        self._behind: list[deque[int]] = [deque() for _ in range(SERVICE_RANKS)]
        self._lines: dict[str, list[_Line]] = {}
        self._over: list[tuple[int, float]] = []  # who would have started, and when
        self._times: _Targets = []  # when each is given up
        self.fitted = 0
        self.given_up = 0

    def __len__(self) -> int:
        """Return how many are followed now."""
        return len(self._alive)

    def joined(self, key: int, rank: int) -> None:
        """Note a request that waits from now on."""
        self._number += 1
        self._waiting[rank][key] = self._number

    def left(self, key: int, rank: int) -> None:
        """Note that it waits no more, whatever became of it."""
        del self._waiting[rank][key]

    def came_free(self, replica: str, tokens: int) -> None:
        """Note reserved tokens that were given back, or that a larger budget added; negative for a smaller one."""
        for line in self._lines_of(replica):
            line.gained += tokens

    def dispatched(self, replica: str, rank: int, tokens: int, now: float) -> None:
        """Note work that was sent to a replica: ghosts of its own and of higher ranks would have been let in there."""
        lines = self._lines_of(replica)
        for line in lines[rank + 1 :]:
            line.gained -= tokens
        for line in lines[: rank + 1]:
            if line.with_room:
                self._over += [(number, now) for number in line.with_room]
                line.with_room.clear()

    def forget(self, replica: str) -> None:
        """Drop a replica that takes nothing more, and the ghosts that looked for room nowhere else."""
        if self._lines.pop(replica, None) is None:
            return
        lines = [line for lines in self._lines.values() for line in lines]
        placed = {number for number, _ in self._over}.union(*self._behind, *(line.with_room for line in lines))
        placed.update(number for line in lines for _, number in line.targets)
        for number in [number for number in self._alive if number not in placed]:
            self._take_out(number)

    def clear(self) -> None:
        """Follow nobody any more, and learn nothing from those who were followed."""
        self._alive.clear()
        self._of_rank = [0] * SERVICE_RANKS
        self._behind = [deque() for _ in range(SERVICE_RANKS)]
        self._lines.clear()
        self._over.clear()
        self._times.clear()

    def follow(self, rank: int, raw_seconds: float, told_seconds: float, reservation: Reservation, now: float) -> bool:
        """Follow a request that is refused now; False when its rank has enough ghosts or its estimate is too long.

        Args:
            rank: its place in the order of service.
            raw_seconds: its estimate with a factor of 1.
            told_seconds: its estimate.
            reservation: what it would have held.
            now: clock reading of the refusal.
        """
        if self._of_rank[rank] >= MOST_PER_RANK or raw_seconds > MOST_RAW_SECONDS:
            return False
        self._number += 1
        self._alive[self._number] = _Ghost(rank, raw_seconds, told_seconds, now, reservation)
        self._of_rank[rank] += 1
        behind = self._behind[rank]
        behind.append(self._number)
        if len(behind) > 2 * MOST_PER_RANK:  # one who waits for long may keep many behind it that were given up
            self._behind[rank] = deque(number for number in behind if number in self._alive)
        give_up_at = now + MOST_FACTOR * raw_seconds + SLACK_SECONDS
        self._push(self._times, give_up_at, self._number, most_alive=SERVICE_RANKS * MOST_PER_RANK)
        return True

    def advance(self, now: float, room: Callable[[], Room], takes_at: TakesAt) -> list[Followed]:
        """Return the ghosts that would have fit by now, and those that are given up.

        Args:
            now: clock reading.
            room: asked once if a ghost comes to the second stage.
            takes_at: asked of the first who has room before each replica.
        """
        self._step_forward(room)
        for name, lines in self._lines.items():
            for rank, line in enumerate(lines):
                if line.targets or line.with_room:
                    self._find_room(name, rank, line, takes_at, now)
        over = [self._end(number, at) for number, at in sorted(self._over, key=itemgetter(1)) if number in self._alive]
        self._over.clear()
        self.fitted += len(over)
        while self._times and self._times[0][0] <= now:
            number = heappop(self._times)[1]
            if number in self._alive:
                self.given_up += 1
                over.append(self._end(number, now))
        return over

    def _step_forward(self, room: Callable[[], Room]) -> None:
        """Let the ghosts before which nobody waits any more look for room."""
        free: list[tuple[str, int]] | None = None
        first: float = float("inf")  # number of who has waited longest, of the ranks so far
        for rank, behind in enumerate(self._behind):
            if self._waiting[rank]:
                first = min(first, next(iter(self._waiting[rank].values())))
            while behind and behind[0] < first:
                number = behind.popleft()
                if number not in self._alive:
                    continue
                free = list(room()) if free is None else free
                if not free:
                    self._take_out(number)
                for name, tokens in free:
                    line = self._lines_of(name)[rank]
                    lacks_tokens = self._alive[number].reservation.total_tokens - tokens
                    self._push(line.targets, line.gained + lacks_tokens, number, most_alive=MOST_PER_RANK)

    def _find_room(self, name: str, rank: int, line: _Line, takes_at: TakesAt, now: float) -> None:
        if line.ask_at is not None and line.ask_at <= now:  # nobody looked at that instant, since nothing happened
            self._start(name, rank, line, takes_at, line.ask_at, now)
        while line.targets and line.targets[0][0] <= line.gained:
            line.with_room.append(heappop(line.targets)[1])
        if len(line.with_room) > 2 * MOST_PER_RANK:
            line.with_room = deque(number for number in line.with_room if number in self._alive)
        self._start(name, rank, line, takes_at, now, now)

    def _start(self, name: str, rank: int, line: _Line, takes_at: TakesAt, at: float, now: float) -> None:
        """Let those who have room start, one after the other, from an instant on and no later than now."""
        line.ask_at = None
        while line.with_room:
            number = line.with_room[0]
            ghost = self._alive.get(number)
            if ghost is not None:
                taken_at = takes_at(name, rank, ghost.reservation, at)
                while taken_at is not None and at < taken_at <= now:
                    at = taken_at
                    taken_at = takes_at(name, rank, ghost.reservation, at)
                if taken_at != at:
                    line.ask_at = taken_at
                    return
                self._over.append((number, at))
            line.with_room.popleft()

    def _lines_of(self, replica: str) -> list[_Line]:
        lines = self._lines.get(replica)
        if lines is None:
            lines = self._lines[replica] = [_Line() for _ in range(SERVICE_RANKS)]
        return lines

    def _end(self, number: int, at: float) -> Followed:
        ghost = self._take_out(number)
        return Followed(ghost.rank, ghost.raw_seconds, ghost.told_seconds, at - ghost.refused_at)

    def _take_out(self, number: int) -> _Ghost:
        ghost = self._alive.pop(number)
        self._of_rank[ghost.rank] -= 1
        return ghost

    def _push(self, heap: _Targets, target: float, number: int, *, most_alive: int) -> None:
        """Push, and throw out what is over when that is most of a heap, so that none grows without bound."""
        if len(heap) >= 2 * most_alive:
            heap[:] = [entry for entry in heap if entry[1] in self._alive]
            heapify(heap)
        heappush(heap, (target, number))
