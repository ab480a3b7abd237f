"""What a refusal costs, and what a storm of them does to those who were admitted."""

from dataplane.asking import Chat, short_text, stream
from dataplane.driving import Clients, Seen
from dataplane.gateway import ONE_SEAT_KEY, Shape, gateway
from dataplane.relay_cost import CALLERS, SECONDS, WARM_SECONDS
from dataplane.rig import LLMSHED, Rig

SEATS = 100
REFUSED_PER_SECOND = {"twice": 150, "tenfold": 1350}
"""Seats whose answers take 2 s serve 50 a second: of twice as many, 50 are refused, and each is tried three times."""
_HELD_SECONDS = 5.0
_SLOW_MS = 1000
_TOKENS = 400


def measure_refusals(rig: Rig) -> None:
    """Measure refusals before a body is read, by a tenant's quota, and after its exact count, by a full queue."""
    storm = Clients(Chat(short_text()), CALLERS)
    own_storm = Clients(Chat(short_text(), key=ONE_SEAT_KEY), CALLERS)
    one_seat = Clients(Chat(short_text(), _TOKENS, streamed=True, pace_ms=_SLOW_MS, key=ONE_SEAT_KEY), 1)
    # One event a second each: what they cost is nothing beside thousands of refusals.
    seats = Clients(stream(_TOKENS, _SLOW_MS), SEATS)
    with gateway(rig.place_of("refusals"), Shape(SEATS, queue=0)) as house:
        for number in range(1, rig.rounds + 1):
            _, early = rig.drive(house, WARM_SECONDS, SECONDS, one_seat, own_storm)
            _note(rig, "refused_unread", number, early)
            _, late = rig.drive(house, _HELD_SECONDS, SECONDS, seats, storm)
            _note(rig, "refused_counted", number, late)


def measure_storm(rig: Rig) -> None:
    """Measure how late events of those who were admitted are, with and without refusals beside them."""
    seats = Clients(stream(_TOKENS), SEATS)
    with gateway(rig.place_of("storm"), Shape(SEATS, queue=0)) as house:
        for number in range(1, rig.rounds + 1):
            (calm,) = rig.drive(house, _HELD_SECONDS, SECONDS, seats)
            rig.figures.note("storm", LLMSHED, number, calm_p50_us=calm.event_us[0], calm_p99_us=calm.event_us[1])
            for name, rate in REFUSED_PER_SECOND.items():
                storm = Clients(Chat(short_text()), rate, open_loop=True)
                streams, refused = rig.drive(house, _HELD_SECONDS, SECONDS, seats, storm)
                p50_us, p99_us, _ = streams.event_us
                seen = {f"{name}_p50_us": p50_us, f"{name}_p99_us": p99_us}
                seen[f"{name}_refused_per_second"] = _refused(refused) / refused.seconds
                seen[f"{name}_served_per_second"] = refused.answers.get(200, 0) / refused.seconds
                rig.figures.note("storm", LLMSHED, number, **seen)
                rig.say(f"storm {number}/{rig.rounds} {name}: event p50 {p50_us} us, answers {refused.answers}")


def _note(rig: Rig, measure: str, number: int, seen: Seen) -> None:
    refused = _refused(seen)
    each = 1e6 * seen.cpu_seconds / refused if refused else None
    rig.figures.note(
        measure,
        LLMSHED,
        number,
        cpu_us_per_request=each,
        refused_per_second=refused / seen.seconds,
        served_per_second=seen.answers.get(200, 0) / seen.seconds,
        cut=seen.cut,
    )
    rig.say(f"{measure} {number}/{rig.rounds}: {each or 0:.1f} us a refusal, answers {seen.answers}")


def _refused(seen: Seen) -> int:
    return sum(count for status, count in seen.answers.items() if status in {429, 503})
