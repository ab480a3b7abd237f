"""What the rule does beneath a rung that a person holds, at a running gateway in leaping time."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from fakes.ladder_house import asked, audited, files, settled, standing
from fakes.leaping import in_leaping_time, leaping_house
from llmshed.admission.events import ReplicaRead

BY_KV_CACHE = """
schema = "llmshed.ladder/1"
name = "kv"
version = "1"
[[rungs]]
name = "shorter"
action = "cap_output"
max_output_tokens = 9
owner = "a"
agreed_on = 2026-12-01
entry = { signal = "kv_used_ratio", above = 0.5, windows = 1 }
exit = { windows = 2 }
[[rungs]]
name = "stop"
action = "stop_bulk"
owner = "a"
agreed_on = 2026-12-01
entry = { signal = "kv_used_ratio", above = 0.95, windows = 1 }
exit = { windows = 2 }
"""


@in_leaping_time
async def test_a_hold_outlives_what_the_rule_does_beneath_it() -> None:
    """The rule climbs with the KV cache and comes back, which the history tells; the held rung stays to its end."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "ladder.toml"
        file.write_text(BY_KV_CACHE)
        async with leaping_house(files(Path(folder)), pool=f'ladder = "{file}"') as gate:
            await asked(gate, "/trigger", {"rung": "stop", "for_seconds": 900, "reason": "a launch"})
            for kv_used, minutes, by_rule in ((0.9, 3, 1), (0.1, 4, 0)):
                gate.daemon.gateway.driver.tell(ReplicaRead("r1", kv_used, None))
                await asyncio.sleep(60 * minutes)
                now = await standing(gate)
                assert (now["rung"], now["by_rule"], now["hold"]["rung"]) == (2, by_rule, "stop")
            await asyncio.sleep(500)
            now = await standing(gate)
            assert (now["rung"], now["by_rule"], now["hold"]) == (0, 0, None)
            await settled(gate)
            steps = [line for line in audited(Path(folder)) if line["what"] == "step"]
            assert [(line["cause"], line["before"], line["after"], line["by_rule"]) for line in steps] == [
                ("held", 0, 2, 0),
                ("climbed", 2, 2, 1),
                ("descended", 2, 2, 0),
                ("expired", 2, 0, 0),
            ]
            counted = (await gate.ask("GET", "/metrics", admin=True)).body.decode()
            assert 'llmshed_ladder_transitions_total{cause="climbed",pool="main"} 1.0' in counted
