"""Text from outside, made fit to be shown."""

import re

_UNSHOWABLE = re.compile(r"[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]")
"""What XML cannot hold, control characters, and marks that turn the direction of what follows."""


def readable(text: str) -> str:
    """Return a text whose unshowable characters are replaced by U+FFFD.

    A file or tenant may be named anything: bytes that are no UTF-8, escape sequences of terminals, marks that turn a
    line around.
    """
    return _UNSHOWABLE.sub("\ufffd", text)
