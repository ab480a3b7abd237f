"""What is valid but probably not meant is a warning."""

import pytest

from llmshed.config.loading import load_config

REPLICAS = 'replicas = [{ name = "r1", url = "simulated:" }]\n'
POOL = f"[[pools]]\n{REPLICAS}"
TENANT = '[[tenants]]\nname = "t"\nkeys_file = "k"\n'
OTHER = '[[pools]]\nname = "b"\nreplicas = [{ name = "r2", url = "simulated:" }]\n'


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        (f'{POOL}[server]\nlisten = "0.0.0.0:1"\nallow_keyless = true', "server.allow_keyless", "without a key"),
        (f"{POOL}{TENANT}[server]\nallow_keyless = true", "server.allow_keyless", "no effect"),
        (f"{POOL}[server]\nmax_body_bytes = 2000001", "server.max_body_bytes", "2000000"),
        (f'{POOL}lanes = ["interactive"]', "pools", "no pool serves the bulk lane"),
        (f"{POOL}[lanes.bulk]\nfirst_byte_timeout_seconds = 119", "lanes.bulk.first_byte_timeout_seconds", "119"),
        (f'{POOL}profile = "p"\ngross_ceiling_tokens = 5', "pools[0].gross_ceiling_tokens", "`profile`, which wins"),
        ('[[pools]]\nreplicas = [{ name = "r1", url = "http://h:1" }]', "pools[0].profile", "uncalibrated"),
    ],
)  # fmt: skip
def test_each_warning_names_its_setting(text: str, path: str, said: str) -> None:
    (warning,) = load_config(text, "f", {}, {}).warnings

    place, told, sentence = warning.split(": ", 2)
    assert place.startswith("f:")
    assert told == path
    assert said in sentence


def test_names_that_two_pools_have_by_default_are_a_warning_for_each() -> None:
    warnings = load_config(f"{POOL}{OTHER}", "f", {}, {}).warnings

    assert ['"dummy"' in warnings[0], '"tgi"' in warnings[1], len(warnings)] == [True, True, 2]
