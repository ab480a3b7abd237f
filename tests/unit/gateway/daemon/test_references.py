"""Files that a configuration names are opened by `config check`."""

import hashlib
from datetime import date
from pathlib import Path

import pytest

from llmshed.gateway.config_file import read_config
from llmshed.gateway.daemon.references import reference_doubts, reference_problems

POOL = '[[pools]]\nreplicas = [{ name = "r1", url = "simulated:" }]\n'
DIGEST = f"sha256:{hashlib.sha256(b'key').hexdigest()}\n"


def problems_of(directory: Path, text: str) -> tuple[str, ...]:
    path = directory / "llmshed.toml"
    path.write_text(text, "utf-8")
    return reference_problems(read_config(path, {}, {}).config)


def test_nothing_named_is_nothing_wrong(tmp_path: Path) -> None:
    assert problems_of(tmp_path, POOL) == ()


def test_sound_files_are_taken(tmp_path: Path, repository: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(DIGEST, "utf-8")
    keys.chmod(0o600)
    (tmp_path / "hash").write_bytes(b"secret")
    (tmp_path / "hash").chmod(0o600)
    (tmp_path / "tok").mkdir()
    (tmp_path / "tok" / "tokenizer.json").write_text("{}", "utf-8")
    profile = repository / "profiles/examples/worked-example.toml"

    assert (
        problems_of(
            tmp_path,
            f'{POOL}profile = "{profile}"\ntokenizer = "tok"\n[[tenants]]\nname = "t"\nkeys_file = "keys"\n'
            '[log]\nhash_key_file = "hash"\ndecisions = "./d.jsonl"\n',
        )
        == ()
    )


@pytest.mark.parametrize(
    ("settings", "setting", "said"),
    [
        ('profile = "p.toml"', "pools[0].profile", "cannot be read"),
        ('profile = "llmshed.toml"', "pools[0].profile", "schema: is missing"),
        ('tokenizer = "./tok"', "pools[0].tokenizer", "tokenizer.json"),
        ('[log]\nhash_key_file = "h"', "log.hash_key_file", "cannot be read"),
        ('[log]\nhash_key_file = "empty"', "log.hash_key_file", "is empty"),
        ('[log]\nhash_key_file = "open"', "log.hash_key_file", "0644"),
        ('[log]\ndecisions = "no/d.jsonl"', "log.decisions", "there is no directory"),
        ('[ladder]\nstate_file = "no/held.json"', "ladder.state_file", "there is no directory"),
        ('[ladder]\naudit_file = "no/audit.jsonl"', "ladder.audit_file", "there is no directory"),
        ('ladder = "./l.toml"', "pools[0].ladder", "cannot be read"),
        ('ladder = "full"', "pools[0].ladder", "no pool `small`"),
        ('[server]\nadmin_token_file = "t"', "server.admin_token_file", "cannot be read"),
        ('[[tenants]]\nname = "t"\nkeys_file = "k"', "tenants[0].keys_file", "cannot be read"),
        ('[[tenants]]\nname = "t"\nkeys_file = "open"', "tenants[0].keys_file", "0644"),
    ],
)
def test_each_unusable_file_is_told_with_its_setting(tmp_path: Path, settings: str, setting: str, said: str) -> None:
    (tmp_path / "empty").touch(mode=0o600)
    (tmp_path / "open").write_text(DIGEST, "utf-8")
    (tmp_path / "open").chmod(0o644)

    problems = problems_of(tmp_path, f"{POOL}{settings}\n")

    assert problems
    assert any(problem.startswith(f"{setting}: ") and said in problem for problem in problems)


def test_what_serve_would_warn_of_is_told(tmp_path: Path, repository: Path) -> None:
    made_for = "[lanes.interactive]\nmax_input_tokens = 2048\nttft_objective_seconds = 2.0\n"
    profile = (repository / "profiles/examples/worked-example.toml").read_text("utf-8") + made_for
    (tmp_path / "p.toml").write_text(profile, "utf-8")
    path = tmp_path / "llmshed.toml"
    settings = "[lanes.interactive]\nmax_input_tokens = 3000\n"
    path.write_text(f'{POOL}name = "p"\nprofile = "p.toml"\nladder = "source"\nlanes = ["interactive"]\n{settings}')

    threshold, rung = reference_doubts(read_config(path, {}, {}).config, date(2026, 12, 1))

    assert threshold.startswith("pool p: lanes.interactive.max_input_tokens is 3,000; profile ")
    assert threshold.endswith(" was made for 2,048")
    assert rung == "pool p: rung `stop-bulk` does nothing, since the pool serves no bulk work"
