"""What a proxy spends on an event of a stream, and on a whole request."""

from dataplane.asking import Chat, short_text, stream
from dataplane.driving import Clients, Seen
from dataplane.gateway import Gateway
from dataplane.proxies import Proxy
from dataplane.rig import Rig

STREAMS = 600
EVENTS_PER_SECOND = 25 * STREAMS
SLOW_STREAMS = {"litellm": 10}
"""Streams before proxies that a tenth of that would stop."""
CALLERS = 32
STREAM_WARM_SECONDS, STREAM_SECONDS = 5.0, 4.0
WARM_SECONDS, SECONDS = 1.0, 3.0
_TOKENS = 400
"""Of each stream: 16 s, so that none begins or ends in the seconds that count."""


def measure_streams(rig: Rig) -> None:
    """Measure paced streams before every proxy in turn; all are open before the seconds that count begin."""

    def take(number: int, name: str, proxy: Proxy | Gateway) -> None:
        streams = SLOW_STREAMS.get(name, STREAMS)
        (seen,) = rig.drive(proxy, STREAM_WARM_SECONDS, STREAM_SECONDS, Clients(stream(_TOKENS), streams))
        each = 1e6 * seen.cpu_seconds / seen.events if seen.events else None
        rig.figures.note(
            "stream",
            name,
            number,
            streams=streams,
            cpu_us_per_event=each,
            events_per_second=seen.events / seen.seconds,
            event_p50_us=seen.event_us[0],
            event_p99_us=seen.event_us[1],
            failures=seen.failures,
        )
        rig.say(f"stream {number}/{rig.rounds} {name}: {_shown(each)} us an event, {_rate(seen.events, seen)}/s")

    rig.take_rounds(take)


def measure_requests(rig: Rig) -> None:
    """Measure whole requests, each connection sending the next when it has the answer to the last."""

    def take(number: int, name: str, proxy: Proxy | Gateway) -> None:
        (seen,) = rig.drive(proxy, WARM_SECONDS, SECONDS, Clients(Chat(short_text()), CALLERS))
        note_requests(rig, "request", name, number, seen)

    rig.take_rounds(take)


def note_requests(rig: Rig, measure: str, name: str, number: int, seen: Seen) -> None:
    """Keep what whole requests of one round cost."""
    each = 1e6 * seen.cpu_seconds / seen.requests if seen.requests else None
    rig.figures.note(
        measure,
        name,
        number,
        cpu_us_per_request=each,
        requests_per_second=seen.requests / seen.seconds,
        answer_p50_us=seen.answer_us[0],
        answer_p99_us=seen.answer_us[1],
        failures=seen.failures,
    )
    rig.say(f"{measure} {number}/{rig.rounds} {name}: {_shown(each)} us a request, {_rate(seen.requests, seen)}/s")


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _rate(count: int, seen: Seen) -> str:
    return f"{count / seen.seconds:,.0f}"
