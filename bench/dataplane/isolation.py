"""How late the events of streams are beside long prompts that are counted meanwhile."""

import os

from dataplane.asking import Chat, long_text, stream
from dataplane.driving import Clients
from dataplane.gateway import gateway
from dataplane.rig import LLMSHED, Rig

STREAMS = 100
LONG_PROMPTS_PER_SECOND = 30
_WARM_SECONDS, _SECONDS = 3.0, 6.0
_TOKENS = 400
_OUTPUT_TOKENS = 16


def measure_isolation(rig: Rig) -> None:
    """Measure the lateness of streams' events alone and beside long prompts; the gateway may run on every core."""
    streams = Clients(stream(_TOKENS), STREAMS)
    prompts = Clients(Chat(long_text(), _OUTPUT_TOKENS), LONG_PROMPTS_PER_SECOND, open_loop=True)
    with gateway(rig.place_of("isolation")) as house:
        house.program.let_run_on(sorted(os.sched_getaffinity(0)))
        for number in range(1, rig.rounds + 1):
            (alone,) = rig.drive(house, _WARM_SECONDS, _SECONDS, streams)
            beside, counted = rig.drive(house, _WARM_SECONDS, _SECONDS, streams, prompts)
            rig.figures.note(
                "isolation",
                LLMSHED,
                number,
                alone_p50_us=alone.event_us[0],
                alone_p99_us=alone.event_us[1],
                beside_p50_us=beside.event_us[0],
                beside_p99_us=beside.event_us[1],
                prompts_per_second=counted.answers.get(200, 0) / counted.seconds,
                prompt_p50_us=counted.answer_us[0],
                failures=alone.failures + beside.failures + counted.failures,
            )
            rig.say(
                f"isolation {number}/{rig.rounds}: event p99 {alone.event_us[1]} us alone, {beside.event_us[1]} beside"
                f" {counted.answers} of {counted.seconds:.0f} s"
            )
