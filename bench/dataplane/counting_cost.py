"""What an exact count adds: to a request whose text nobody has seen, and to a conversation with one new turn."""

from itertools import count

import counting
from dataplane.asking import NUMBER, Chat, short_text, unlike
from dataplane.driving import Clients
from dataplane.gateway import tokenizer
from dataplane.relay_cost import CALLERS, SECONDS, WARM_SECONDS, note_requests
from dataplane.rig import LLMSHED, Rig
from measure import cpu_microseconds
from tokenizers import Tokenizer

from llmshed.tokenizing.load import find

ENCODE = "encode_batch_fast"
"""The yardstick: the tokenizers library alone, in a process of its own."""
_REPEATS = 200
_SENTENCES = 16
"""Of each message: 13,600 tokens in all."""


def measure_cold(rig: Rig) -> None:
    """Measure requests no text of which comes twice, and the tokenizer alone on such texts.

    Raises:
        NotRunningError: llmshed does not run.
    """
    library = Tokenizer.from_str(find(tokenizer()).tokenizer_json)
    chat = unlike(Chat(short_text()))
    numbers = count()

    def encode() -> None:
        library.encode_batch_fast([chat.text.replace(NUMBER, f"{next(numbers):08x}")])

    for number in range(1, rig.rounds + 1):
        (seen,) = rig.drive(rig.proxy(LLMSHED), WARM_SECONDS, SECONDS, Clients(chat, CALLERS))
        note_requests(rig, "cold", LLMSHED, number, seen)
        alone = cpu_microseconds({ENCODE: encode}, _REPEATS)[ENCODE]
        rig.figures.note("cold", ENCODE, number, cpu_us_per_request=alone)
    rig.say(f"cold: {ENCODE} alone {rig.figures.middle('cold', ENCODE, 'cpu_us_per_request')} us")


def measure_turns(rig: Rig) -> None:
    """Measure the count of a conversation of twenty turns, one of them new, beside the tokenizer alone on its text."""
    tokens, microseconds = counting.figures(find(tokenizer()), _SENTENCES)
    rig.figures.note("turns", ENCODE, 1, cpu_us=microseconds[counting.ALONE])
    rig.figures.note("turns", LLMSHED, 1, cpu_us=microseconds[counting.ONE_NEW_TURN], tokens=tokens)
    rig.say(f"turns: {tokens} tokens, {rig.figures.ratio('turns', LLMSHED, ENCODE, 'cpu_us')} of {ENCODE} alone")
