"""Ladders as a configuration names them: read by name or path, held against pools, tenants and engines."""

import datetime as dt
from pathlib import Path

import pytest

from llmshed.config.ladders import SHIPPED_LADDERS
from llmshed.config.loading import load_config
from llmshed.config.settings import Config
from llmshed.errors import ConfigError, LadderError
from llmshed.gateway.ladders.files import doubts, read_ladder, read_ladders

HEAD = 'schema = "llmshed.ladder/1"\nname = "own"\nversion = "2"\n'
RUNG = '[[rungs]]\nname = "one"\nowner = "a"\nagreed_on = 2026-12-01\n'
TODAY = dt.date(2026, 12, 1)


def config(*pools: str, tenants: str = "") -> Config:
    tables = "".join(
        f'[[pools]]\n{pool}\n[[pools.replicas]]\nname = "r{number}"\nurl = "http://127.0.0.1:{9000 + number}"\n'
        for number, pool in enumerate(pools)
    )
    return load_config(f"{tenants}{tables}", "llmshed.toml", {}, {}).config


def written(folder: Path, rungs: str, head: str = HEAD) -> str:
    (folder / "own.toml").write_text(head + rungs)
    return f"{folder}/own.toml"


def pool(name: str, ladder: str = "", **other: str) -> str:
    lines = [f'name = "{name}"', f'model = "org/{name}"', "aliases = []"]
    lines += [f'ladder = "{ladder}"'] if ladder else []
    return "\n".join([*lines, *(f"{key} = {value}" for key, value in other.items())])


def mistakes(given: Config) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as refused:
        read_ladders(given)
    return refused.value.problems


@pytest.mark.parametrize("name", SHIPPED_LADDERS)
def test_a_shipped_ladder_is_read_by_its_name(name: str) -> None:
    assert read_ladder(name).name == name


def test_its_file_of_evaluations_stands_beside_it(tmp_path: Path) -> None:
    ladder = read_ladder(written(tmp_path, f'{RUNG}action = "stop_bulk"\n', f'{HEAD}evaluations = "drill.json"\n'))
    assert ladder.evaluations == f"{tmp_path}/drill.json"


@pytest.mark.parametrize("content", [b"\xff", b"x" * 1_048_577])
def test_what_is_no_text_of_a_ladder_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "l.toml").write_bytes(content)
    with pytest.raises(LadderError):
        read_ladder(f"{tmp_path}/l.toml")


def test_each_pool_has_its_own(tmp_path: Path) -> None:
    own = written(tmp_path, f'{RUNG}action = "stop_bulk"\n')
    found = read_ladders(config(pool("large", own), pool("small", "source"), pool("bare")))
    assert {name: ladder.label for name, ladder in found.items()} == {"large": "own@2", "small": "source@1"}


def test_every_mistake_of_every_ladder_is_told_with_its_pool(tmp_path: Path) -> None:
    own = written(tmp_path, f'{RUNG}action = "smaller_model"\npool = "tiny"\nscope = {{ tenants = ["acme"] }}\n')
    told = mistakes(config(pool("large", own), pool("small", f"{tmp_path}/absent.toml")))
    assert [line.split(": ")[:3] for line in told] == [
        ["pools[0].ladder", own, "rungs[0].scope.tenants"],
        ["pools[0].ladder", own, "rungs[0].pool"],
        ["pools[1].ladder", f"{tmp_path}/absent.toml", "cannot be read"],
    ]
    assert told[1].endswith("accepted: `small`")


def test_a_misspelt_name_is_no_path() -> None:
    with pytest.raises(ConfigError, match=r"pools\[0\].ladder: \"sauce\" is refused; accepted: `source`, `full`"):
        config(pool("large", "sauce"))


def test_a_pool_that_serves_bulk_alone_takes_no_interactive_work_over(tmp_path: Path) -> None:
    own = written(tmp_path, f'{RUNG}action = "smaller_model"\npool = "small"\n')
    (told,) = mistakes(config(pool("large", own), pool("small", lanes='["bulk"]')))
    assert "serves no interactive work" in told


def test_no_way_leads_back(tmp_path: Path) -> None:
    to_small = written(tmp_path, f'{RUNG}action = "smaller_model"\npool = "small"\n')
    (tmp_path / "back.toml").write_text(f'{HEAD}{RUNG}action = "smaller_model"\npool = "large"\n')
    (told,) = mistakes(config(pool("large", to_small), pool("small", f"{tmp_path}/back.toml")))
    assert "`large` to `small` to `large`" in told


def test_tgi_takes_no_arguments_of_the_chat_template(tmp_path: Path) -> None:
    own = written(tmp_path, f'{RUNG}action = "disable_thinking"\ntemplate_argument = "enable_thinking"\n')
    (told,) = mistakes(config(pool("large", own)))
    assert "rungs[0].template_argument" in told
    assert "`prompt_suffix`" in told


def test_rungs_that_have_nobody_to_act_on_are_doubted() -> None:
    given = config(pool("large", "source", lanes='["interactive"]'))
    (told,) = doubts(read_ladders(given), given, TODAY)
    assert told == "pool large: rung `stop-bulk` does nothing, since the pool serves no bulk work"


def test_what_the_ladder_leaves_open_is_doubted() -> None:
    given = config(pool("large", "full"), pool("small"))
    (told,) = doubts(read_ladders(given), given, TODAY)
    assert told.startswith("pool large: full@1: evaluations: is missing")
    assert len(list(doubts(read_ladders(given), given, TODAY - dt.timedelta(days=1)))) == 9  # eight of the future
