"""`llmshed replay` beside another public load tool: one simulated replica, one workload, figures side by side.

The other tool is AIPerf, NVIDIA's, in an environment of its own in the bench's folder of cached things. Both send the
same number of chats of the same lengths at the same constant rate, one tool after the other. Run it alone, with a
tokenizer directory: `python bench/load_tools.py DIR`; after the first time it takes two minutes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dataplane.building import cache_folder

AIPERF = "aiperf==0.13.0"
REQUESTS, RATE, INPUT_TOKENS, OUTPUT_TOKENS = 100, 5.0, 512, 64
SHARES = (50, 90, 99)
LLMSHED = str(Path(sys.executable).with_name("llmshed"))
MODEL = "llmshed/simulated"
HUB_NAME, REVISION = "local/tokenizer", "0" * 40
"""What the tokenizer is called in a cache of the hub that is made for the other tool: it takes no directory."""


@contextmanager
def replica(tokenizer: str) -> Iterator[str]:
    """Run a simulated replica whose answers run to their ceiling."""
    command = [LLMSHED, "simulate", "--port", "0", "--output-mean", "ceiling", "--tokenizer", tokenizer, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 - it is piped
        told = ""
        while not (found := re.search(r'"url": ?"([^"]+)"', told)):
            told += process.stdout.readline()
        try:
            yield found[1]
        finally:
            process.terminate()


def other_tool() -> str:
    """Return the other tool's program, installing it the first time."""
    folder = cache_folder() / AIPERF
    program = folder / "bin" / "aiperf"
    if not program.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", AIPERF], check=True)
    return str(program)


def ours(url: str, tokenizer: str, place: Path) -> dict[str, Any]:
    """Return our quantiles in milliseconds, by what they are of."""
    trace = place / "trace.csv"
    rows = "".join(
        f"{number / RATE:.6f},interactive,t,{INPUT_TOKENS},{OUTPUT_TOKENS},{OUTPUT_TOKENS},1\n"
        for number in range(REQUESTS)
    )
    trace.write_text("at_seconds,lane,tenant,input_tokens,asked_output_tokens,output_tokens,sequences\n" + rows)
    options = ("--api", "chat", "--tokenizer", tokenizer, "--no-probe", "--lengths", "trace", "--json")
    ran = subprocess.run([LLMSHED, "replay", trace, "--to", url, *options], check=True, capture_output=True, text=True)
    told = json.loads(ran.stdout)
    print(f"llmshed replay: {told['generator']}, {told['warnings']}", file=sys.stderr)
    (lane,) = told["lanes"].values()
    named = {"TTFT": "ttft", "ITL": "itl", "TPOT": "tpot", "end to end": "end_to_end"}
    return {name: [1000 * lane[f"{key}_seconds"][f"p{at}"] for at in SHARES] for name, key in named.items()}


def hub_home(tokenizer: str, place: Path) -> Path:
    """Lay a tokenizer into a cache of the hub and return where that is."""
    home = place / "hub-home"
    repository = home / "hub" / f"models--{HUB_NAME.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(REVISION)
    shutil.copytree(tokenizer, repository / "snapshots" / REVISION)
    return home


def theirs(url: str, tokenizer: str, place: Path) -> dict[str, Any]:
    """Return the other tool's quantiles in milliseconds, by its own names for them."""
    options = {
        "--model": MODEL, "--url": url, "--endpoint-type": "chat", "--tokenizer": HUB_NAME, "--ui": "none",
        "--request-rate": str(RATE), "--request-rate-mode": "constant", "--request-count": str(REQUESTS),
        "--synthetic-input-tokens-mean": str(INPUT_TOKENS), "--synthetic-input-tokens-stddev": "0",
        "--output-tokens-mean": str(OUTPUT_TOKENS), "--output-tokens-stddev": "0", "--artifact-dir": str(place),
    }  # fmt: skip
    words = [word for pair in options.items() for word in pair]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(hub_home(tokenizer, place))}
    subprocess.run([other_tool(), "profile", "--streaming", *words], check=True, env=environment, stdout=sys.stderr)
    (file,) = place.rglob("profile_export_aiperf.json")
    told = json.loads(file.read_text("utf-8"))
    named = {
        "TTFT": "time_to_first_token",
        "ITL": "inter_chunk_latency",
        "TPOT": "inter_token_latency",
        "end to end": "request_latency",
    }
    return {name: [told.get(key, {}).get(f"p{at}") for at in SHARES] for name, key in named.items()}


def main(tokenizer: str) -> None:
    """Run both and print the table."""
    with tempfile.TemporaryDirectory() as folder, replica(tokenizer) as url:
        place = Path(folder)
        both = {"llmshed replay": ours(url, tokenizer, place), AIPERF.replace("==", " "): theirs(url, tokenizer, place)}
    print(f"{REQUESTS} chats of {INPUT_TOKENS} tokens in and {OUTPUT_TOKENS} out, {RATE:g} a second; milliseconds")
    print(f"| | tool | {' | '.join(f'p{at}' for at in SHARES)} |")
    print(f"|---|---|{'---|' * len(SHARES)}")
    for name in next(iter(both.values())):
        for tool, figures in both.items():
            cells = " | ".join("-" if one is None else f"{one:.1f}" for one in figures[name])
            print(f"| {name} | {tool} | {cells} |")


if __name__ == "__main__":
    main(sys.argv[1])
