"""What an open stream takes of a proxy's memory."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from dataplane.asking import Chat, short_text, stream
from dataplane.driving import Clients
from dataplane.gateway import Gateway, gateway
from dataplane.proxies import Place, Proxy, nginx
from dataplane.rig import LLMSHED, NGINX, Rig

STREAMS = 1000
_WARM_SECONDS, _SECONDS = 10.0, 1.0
_TOKENS = 400
_SLOW_MS = 1000

_FRESH: dict[str, Callable[[Place], AbstractContextManager[Proxy | Gateway]]] = {NGINX: nginx, LLMSHED: gateway}


def measure_memory(rig: Rig) -> None:
    """Measure how much a fresh proxy grows by a thousand streams open at once; socket buffers are not in it."""
    for number in range(1, rig.rounds + 1):
        for name, start in _FRESH.items():
            with start(rig.place_of(f"memory-{name}-{number}")) as proxy:
                rig.drive(proxy, 0.5, 0.5, Clients(Chat(short_text()), 1))
                before = proxy.program.pss_bytes
                (seen,) = rig.drive(proxy, _WARM_SECONDS, _SECONDS, Clients(stream(_TOKENS, _SLOW_MS), STREAMS))
            grown = (seen.pss_bytes - before) / STREAMS
            rig.figures.note(
                "memory",
                name,
                number,
                bytes_per_stream=grown,
                idle_bytes=before,
                open_streams=seen.running,
                failures=seen.failures,
            )
            rig.say(f"memory {number}/{rig.rounds} {name}: {grown / 1000:.1f} kB for each of {seen.running} streams")
