"""The configuration on disk."""

from pathlib import Path

import pytest

from llmshed.errors import ConfigError
from llmshed.gateway.config_file import find_config, read_config

POOL = '[[pools]]\nreplicas = [{ name = "r1", url = "simulated:" }]\n'


def written(directory: Path, text: str | bytes) -> Path:
    path = directory / "llmshed.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_the_working_directory_is_looked_at_first_then_the_user_s_configuration(tmp_path: Path) -> None:
    user = tmp_path / "xdg" / "llmshed"
    user.mkdir(parents=True)
    written(user, POOL)
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}

    assert find_config(environ, tmp_path) == user / "llmshed.toml"
    written(tmp_path, POOL)
    assert find_config(environ, tmp_path) == tmp_path / "llmshed.toml"


def test_without_xdg_the_user_s_configuration_stands_in_home(tmp_path: Path) -> None:
    user = tmp_path / ".config" / "llmshed"
    user.mkdir(parents=True)
    written(user, POOL)

    assert find_config({"HOME": str(tmp_path)}, tmp_path / "elsewhere") == user / "llmshed.toml"


def test_when_there_is_none_all_places_are_named(tmp_path: Path) -> None:
    if Path("/etc/llmshed/llmshed.toml").exists():
        pytest.skip("this machine has a configuration of its own")
    with pytest.raises(ConfigError, match="--config") as refused:
        find_config({"XDG_CONFIG_HOME": "relative/is/ignored"}, tmp_path)
    assert str(tmp_path / "llmshed.toml") in str(refused.value)
    assert "/etc/llmshed/llmshed.toml" in str(refused.value)
    assert "relative" not in str(refused.value)


def test_relative_paths_start_at_the_directory_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "tok" / "en").mkdir(parents=True)
    text = f"""\
{POOL}
profile = "p.toml"
tokenizer = "tok/en"
[server]
admin_token_file = "/etc/token"
[log]
decisions = "./d.jsonl"
hash_key_file = "h"
[[tenants]]
name = "t"
keys_file = "../k"
"""
    config = read_config(written(tmp_path, text), {}, {}).config

    assert config.pools[0].profile == str(tmp_path / "p.toml")
    assert config.pools[0].tokenizer == str(tmp_path / "tok/en")
    assert config.server.admin_token_file == "/etc/token"
    assert config.log.decisions == str(tmp_path / "d.jsonl")
    assert config.log.hash_key_file == str(tmp_path / "h")
    assert config.tenants[0].keys_file == f"{tmp_path}/../k"


def test_a_hub_id_stays_one_and_words_stay_words(tmp_path: Path) -> None:
    text = f'{POOL}tokenizer = "org/model"\n[log]\ndecisions = "off"\n'
    config = read_config(written(tmp_path, text), {}, {}).config

    assert config.pools[0].tokenizer == "org/model"
    assert config.pools[0].profile is None
    assert config.log.decisions == "off"


def test_paths_in_variables_and_flags_start_at_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etc").mkdir()
    monkeypatch.chdir(tmp_path)

    config = read_config(
        written(tmp_path / "etc", POOL), {"LLMSHED_LOG__HASH_KEY_FILE": "h"}, {"pools[0].profile": "p.toml"}
    ).config

    assert config.log.hash_key_file == str(tmp_path / "h")
    assert config.pools[0].profile == str(tmp_path / "p.toml")


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    read_config(written(tmp_path, b"\xef\xbb\xbf" + POOL.encode()), {}, {})


def test_bytes_that_are_not_utf_8_have_their_line(tmp_path: Path) -> None:
    path = written(tmp_path, b"[log]\nlevel = '\xff'\n")
    with pytest.raises(ConfigError) as refused:
        read_config(path, {}, {})
    assert refused.value.problems == (f"{path}:2: not UTF-8: byte 0xff",)


@pytest.mark.parametrize("name", ["missing.toml", "", "nul\0.toml"])
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot be"):
        read_config(tmp_path / name, {}, {})


def test_a_file_of_another_kind_is_not_read_to_its_end() -> None:
    with pytest.raises(ConfigError, match="larger than"):
        read_config(Path("/dev/zero"), {}, {})
