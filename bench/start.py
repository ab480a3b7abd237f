"""How long the command line takes to start, beside an empty Python."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

ROUNDS = 9


def wall_milliseconds(command: Sequence[str]) -> float:
    """Return how long one run of a command takes."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1e3


BARE = "python -c pass"
HELP = "llmshed --help"


def figures() -> dict[str, float]:
    """Return the median milliseconds of each command."""
    llmshed = str(Path(sys.executable).with_name("llmshed"))
    commands = {
        BARE: [sys.executable, "-c", "pass"],
        HELP: [llmshed, "--help"],
        "llmshed tokenize hello": [llmshed, "tokenize", "hello"],
        "llmshed classify --input-tokens 400": [llmshed, "classify", "--input-tokens", "400"],
    }
    samples: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            samples[name].append(wall_milliseconds(command))
    return {name: median(values) for name, values in samples.items()}


def main() -> None:
    """Print the figures."""
    print("\nstart (wall)")
    seen = figures()
    for name, milliseconds in seen.items():
        print(f"  {name:<44}{milliseconds:>12.1f} ms{milliseconds / seen[BARE]:>10.2f} x")


if __name__ == "__main__":
    main()
