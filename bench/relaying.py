"""What the gateway's process spends on a streamed chat, and on each token of its answer.

A gateway and a simulated replica run as programs of their own; the CPU time of the first is read before and after
each round of chats (Linux). Rounds of two lengths alternate, so that noise hits both alike; the cost of a token is the
difference between them. Run it alone: `python bench/relaying.py`; it takes a minute.
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import aiohttp

START_LOOKS = 1200  # a minute, twenty looks a second
CHATS, AT_ONCE, ROUNDS = 200, 20, 5
SHORT_TOKENS, LONG_TOKENS = 2, 102
LLMSHED = str(Path(sys.executable).with_name("llmshed"))
REPLICA = ("--port", "0", "--output-mean", "ceiling", "--step-seconds", "0.01", "--json")


@contextmanager
def running(log: Path, *arguments: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Run `llmshed ARGUMENTS`, and stop it afterwards; gives its process and the addresses that it tells when ready."""
    with log.open("wb") as into:
        process = subprocess.Popen([LLMSHED, *arguments], stdout=into, stderr=into)
    try:
        yield process.pid, addresses(process, log)
    finally:
        process.terminate()
        process.wait()


def addresses(process: subprocess.Popen[bytes], log: Path) -> dict[str, str]:
    """Return what a program told of its addresses: `url` of a replica, `data` of a gateway."""
    for _ in range(START_LOOKS):
        if process.poll() is not None:
            break
        told = re.findall(r'"(url|data)": ?"([^"]+)"', log.read_text("utf-8"))
        if told:
            return dict(told)
        time.sleep(0.05)
    sys.exit(log.read_text("utf-8"))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def chats(url: str, output_tokens: int) -> None:
    """Send a round of streamed chats, some at a time, and read every answer to its end."""
    body = {
        "model": "llmshed/simulated",
        "messages": [{"role": "user", "content": "Hello."}],
        "max_tokens": output_tokens,
        "stream": True,
    }
    free = asyncio.Semaphore(AT_ONCE)

    async def one(session: aiohttp.ClientSession) -> None:
        async with free, session.post(f"{url}/v1/chat/completions", json=body) as answer:
            if answer.status != 200:
                sys.exit(f"status {answer.status}: {await answer.text()}")
            async for _ in answer.content.iter_any():
                pass

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(one(session) for _ in range(CHATS)))


def main() -> None:
    """Print the figures."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _, replica = stack.enter_context(running(folder / "replica.log", "simulate", *REPLICA))
        config = folder / "llmshed.toml"
        config.write_text(
            f'[log]\ndecisions = "{folder / "decisions.jsonl"}"\n'
            f'[[pools]]\ngross_ceiling_tokens = 40_000\nreplicas = [{{ name = "r", url = "{replica["url"]}" }}]\n'
        )
        listeners = ("--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
        gateway, told = stack.enter_context(
            running(folder / "gateway.log", "serve", "--config", str(config), *listeners)
        )
        url = told["data"] if "://" in told["data"] else f"http://{told['data']}"
        asyncio.run(chats(url, SHORT_TOKENS))
        spent: dict[int, list[float]] = {SHORT_TOKENS: [], LONG_TOKENS: []}
        for _ in range(ROUNDS):
            for tokens, samples in spent.items():
                before = cpu_seconds(gateway)
                asyncio.run(chats(url, tokens))
                samples.append((cpu_seconds(gateway) - before) / CHATS)
    short, long = median(spent[SHORT_TOKENS]), median(spent[LONG_TOKENS])
    pairs = zip(spent[SHORT_TOKENS], spent[LONG_TOKENS], strict=True)
    each = sorted((more - less) / (LONG_TOKENS - SHORT_TOKENS) for less, more in pairs)
    print(f"\nrelaying, {AT_ONCE} streams at a time (CPU of the gateway's process)")
    print(f"  a chat with {SHORT_TOKENS} output tokens{1e3 * short:>29.2f} ms")
    print(f"  a chat with {LONG_TOKENS} output tokens{1e3 * long:>27.2f} ms")
    print(f"  each token{1e6 * median(each):>40.0f} us, {1e6 * each[0]:.0f} to {1e6 * each[-1]:.0f} by round")


if __name__ == "__main__":
    main()
