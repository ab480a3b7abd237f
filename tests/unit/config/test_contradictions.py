"""Settings that are valid one by one but not together."""

import pytest
import tomli
from pydantic import ValidationError

from llmshed.config.loading import load_config
from llmshed.config.settings import Config
from llmshed.errors import ConfigError

REPLICAS = 'replicas = [{ name = "r1", url = "simulated:" }]\n'
POOL = f"[[pools]]\n{REPLICAS}"
TENANT = '[[tenants]]\nname = "t"\nkeys_file = "k"\n'
OTHER = 'replicas = [{ name = "r2", url = "simulated:" }]\n'
NAMED = '[[pools]]\nmodel = "{}"\naliases = ["{}"]\n'
ALIASED = '[[pools]]\nlanes = ["{}"]\naliases = ["x"]\n'
SECOND = '[[pools]]\nname = "b"'

CASES = {
    "open to strangers": (f'{POOL}[server]\nlisten = "0.0.0.0:80"', "server.listen", "there are no tenants"),
    "every interface by IPv6": (f'{POOL}[server]\nlisten = "[::]:80"', "server.listen", "there are no tenants"),
    "admin open to strangers": (
        f'{POOL}[server]\nadmin_listen = "10.0.0.1:99"', "server.admin_listen", "set `admin_token_file`",
    ),
    "one address twice": (
        f'{POOL}[server]\nlisten = "127.0.0.1:1"\nadmin_listen = "127.0.0.1:1"', "server.admin_listen", "its own",
    ),
    "one file for holds and their audit": (
        f'{POOL}[ladder]\nstate_file = "l.json"\naudit_file = "l.json"', "ladder.state_file", "audit_file",
    ),
    "one file for holds and decisions": (
        f'{POOL}[ladder]\nstate_file = "/l.json"\n[log]\ndecisions = "/l.json"', "ladder.state_file", "log.decisions",
    ),
    "default above the maximum": (
        f"{POOL}[lanes.bulk]\nmax_output_tokens = 1100\ndefault_output_tokens = 1101",
        "lanes.bulk.default_output_tokens", "at most 1100",
    ),
    "bulk takes less input": (
        f"{POOL}[lanes.bulk]\nmax_input_tokens = 4095", "lanes.bulk.max_input_tokens", "at least 4096",
    ),
    "bulk takes less output": (
        f"{POOL}[lanes.bulk]\nmax_output_tokens = 1023\ndefault_output_tokens = 5",
        "lanes.bulk.max_output_tokens", "at least 1024",
    ),
    "a wait that ends with the queue's share": (
        f"{POOL}[lanes.interactive]\nmax_residence_seconds = 0.6", "lanes.interactive.max_residence_seconds", "0.6",
    ),
    "inline beyond small": (f"{POOL}[counting]\ninline_bytes = 65537", "counting.inline_bytes", "65536"),
    "small beyond its queue": (f"{POOL}[counting]\nsmall_queue_bytes = 65535", "counting.small_bytes", "65535"),
    "body beyond its queue": (f"{POOL}[counting]\nlarge_queue_bytes = 1999999", "server.max_body_bytes", "1999999"),
    "one tenant twice": (POOL + TENANT + TENANT.replace('"k"', '"l"'), "tenants[1].name", "already"),
    "one keys file twice": (POOL + TENANT + TENANT.replace('"t"', '"u"'), "tenants[1].keys_file", "already"),
    "default intent not allowed": (f'{POOL}{TENANT}intents = ["bulk"]', "tenants[0].default_intent", "bulk"),
    "one pool twice": (f"{POOL}[[pools]]\n{OTHER}", "pools[1].name", "already"),
    "one replica in two pools": (f'{POOL}[[pools]]\nname = "b"\n{REPLICAS}', "pools[1].replicas[0].name", "already"),
    "one engine twice": (
        '[[pools]]\nreplicas = [{ name = "a", url = "http://h:1" }, { name = "b", url = "http://h:1/" }]',
        "pools[0].replicas[1].url", "lent twice",
    ),
    "an alias for two models": (
        NAMED.format("m", "x") + REPLICAS + SECOND + NAMED.format("n", "x").removeprefix("[[pools]]") + OTHER,
        "pools[1].aliases", '"x" leads to pool `main` too',
    ),
    "an alias that is another's model": (
        f'[[pools]]\nmodel = "m"\n{REPLICAS}[[pools]]\nname = "b"\nmodel = "n"\naliases = ["m"]\n{OTHER}',
        "pools[1].aliases", '"m" leads to pool `main` too',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "path", "said"), CASES.values(), ids=CASES)
def test_each_contradiction_is_the_one_mistake_told_at_its_setting(text: str, path: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(text, "f", {}, {})

    (problem,) = refused.value.problems
    place, told, sentence = problem.split(": ", 2)
    assert place.startswith("f:")
    assert told == path
    assert said in sentence


@pytest.mark.parametrize(("text", "path", "said"), CASES.values(), ids=CASES)
def test_no_code_can_build_a_contradiction_either(text: str, path: str, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Config.model_validate(tupled(tomli.loads(text)))
    assert said in str(refused.value)
    assert path in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        f'{POOL}[server]\nlisten = "0.0.0.0:80"\nallow_keyless = true',
        f'{POOL}{TENANT}[server]\nlisten = "0.0.0.0:80"',
        f'{POOL}[server]\nadmin_listen = "0.0.0.0:80"\nadmin_token_file = "t"',
        f'{POOL}[server]\nadmin_listen = "unix:/x"',
        f'{POOL}[server]\nlisten = "127.0.0.1:0"\nadmin_listen = "127.0.0.1:0"',
        f"{POOL}[lanes.bulk]\nmax_input_tokens = 4096\nmax_output_tokens = 1024\n",
        '[[pools]]\nreplicas = [{ name = "a", url = "simulated:" }, { name = "b", url = "simulated:" }]',
        NAMED.format("m", "x") + REPLICAS + SECOND + NAMED.format("m", "x").removeprefix("[[pools]]") + OTHER,
        ALIASED.format("bulk") + REPLICAS + SECOND + ALIASED.format("interactive").removeprefix("[[pools]]") + OTHER,
    ],
)
def test_what_only_looks_like_a_contradiction_is_taken(text: str) -> None:
    load_config(text, "f", {}, {})


def tupled(value: object) -> object:
    if isinstance(value, dict):
        return {key: tupled(element) for key, element in value.items()}
    return tuple(tupled(element) for element in value) if isinstance(value, list) else value
