"""`llmshed classify --gateway` before a gateway that does not simply answer: the exit code says whose turn it is."""

import asyncio
import hashlib
from pathlib import Path

from conftest import Cli, Ran
from fakes.house import House, house

OK, BAD_DATA, UNAVAILABLE, TEMPORARY, NO_PERMISSION = 0, 65, 69, 75, 77


async def classify(cli: Cli, gate: House, *arguments: str | Path, stdin: str = "") -> Ran:
    """Ask from a thread, since the gateway runs in this one."""
    return await asyncio.to_thread(cli, "classify", *arguments, "--gateway", gate.admin, stdin=stdin)


async def test_the_token_of_a_file_is_sent_and_a_wrong_one_or_none_is_a_lack_of_permission(
    cli: Cli, tmp_path: Path
) -> None:
    digests, right, wrong = tmp_path / "digests", tmp_path / "right", tmp_path / "wrong"
    digests.write_text(f"sha256:{hashlib.sha256(b'operator').hexdigest()}\n")
    digests.chmod(0o600)
    right.write_text("operator\n")
    wrong.write_text("visitor\n")
    sized = ("--input-tokens", "5")
    async with house(f'[server]\nadmin_token_file = "{digests}"\n') as gate:
        assert (await classify(cli, gate, *sized, "--token-file", right)).exit_code == OK
        for refused in (await classify(cli, gate, *sized), await classify(cli, gate, *sized, "--token-file", wrong)):
            assert (refused.exit_code, refused.stdout) == (NO_PERMISSION, "")
            assert "--token-file" in refused.stderr


async def test_a_question_that_the_gateway_finds_wrong_is_bad_data_as_it_is_without_one(cli: Cli) -> None:
    body = '{"inputs": "a", "parameters": {"max_new_tokens": 0}}'
    async with house() as gate:
        asked = await classify(cli, gate, "--request", "-", stdin=body)
    alone = await asyncio.to_thread(cli, "classify", "--request", "-", stdin=body)

    assert (asked.exit_code, alone.exit_code) == (BAD_DATA, BAD_DATA)
    assert "max_new_tokens" in asked.stderr


async def test_a_port_on_which_something_else_answers_is_no_gateway(cli: Cli) -> None:
    async with house() as gate:
        ran = await asyncio.to_thread(cli, "classify", "--input-tokens", "5", "--gateway", gate.urls[0])
    assert ran.exit_code == UNAVAILABLE
    assert "admin_listen" in ran.stderr


async def test_what_cannot_be_counted_yet_may_be_later(cli: Cli) -> None:
    async with house(replicas=(), pool='replicas = [{ name = "r1", url = "http://127.0.0.1:9" }]', ready=False) as gate:
        ran = await classify(cli, gate, "Hello")
    assert ran.exit_code == TEMPORARY, ran.stderr
