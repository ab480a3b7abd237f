"""Counts every dear string step by step, in several sizes: `python bomb_steps.py TOKENIZER ENOUGH_TOKENS BYTES...`.

Prints the longest step of each in seconds of processor time, and by how much the process grew, as one JSON object.
"""

import resource
import sys
import time

import orjson

from llmshed.errors import PromptError
from llmshed.tokenizing.bombs import BOMBS, bomb
from llmshed.tokenizing.build import build_counter
from llmshed.tokenizing.load import find
from llmshed.tokenizing.prompts import TextPrompt


def longest_step(prompt: TextPrompt, enough_tokens: int) -> float:
    longest, began = 0.0, time.process_time()
    try:
        for _ in counter.steps(prompt, enough_tokens):
            longest, began = max(longest, time.process_time() - began), time.process_time()
    except PromptError as error:
        if "in one piece" not in str(error):
            raise
    return max(longest, time.process_time() - began)


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    counter = build_counter(find(sys.argv[1]), "tgi")
    enough, sizes = int(sys.argv[2]), list(map(int, sys.argv[3:]))
    before = peak_bytes()
    steps = {
        unit: max(longest_step(TextPrompt(bomb(unit, size_bytes)), enough) for size_bytes in sizes) for unit in BOMBS
    }
    sys.stdout.buffer.write(orjson.dumps({"steps": steps, "grown_bytes": peak_bytes() - before}))
