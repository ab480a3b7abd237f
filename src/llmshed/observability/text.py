"""Text from outside, made safe to print: one line, no control characters, bounded."""

MAX_TEXT_CHARS = 2000
"""Longest free text that is told or written down; a sentence with its numbers is a tenth of it."""


def one_line(text: str, max_chars: int = MAX_TEXT_CHARS) -> str:
    """Return `text` as at most `max_chars` printable characters.

    Every line break that any reader knows (CR, LF, U+0085, U+2028 and their kin), every terminal control and every lone
    surrogate becomes a space, so that the text can neither open a second log line or event nor fail to be encoded.
    """
    text = text[:max_chars]
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)


def header_text(text: str, max_chars: int = 256) -> str:
    """Return `text` as printable ASCII that fits a header value; each other character becomes `?`."""
    text = text[:max_chars]
    if text.isascii() and text.isprintable():
        return text.strip()
    return "".join(character if " " <= character <= "~" else "?" for character in text).strip()
