"""Words from the inline macros of mdoc(7)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_ESCAPES = {
    "-": "-", "e": "\\", "&": "", "|": "", "^": "", "~": " ", " ": " ", "0": " ", ":": "", "%": "",
    "em": "\u2014", "en": "\u2013", "aq": "'", "dq": '"', "lq": "\u201c", "rq": "\u201d", "oq": "\u2018",
    "cq": "\u2019", "bu": "\u2022", "ha": "^", "ti": "~", "rs": "\\", "ga": "`", "mu": "\u00d7", "mi": "\u2212",
    "<=": "\u2264", ">=": "\u2265", "->": "\u2192", "lB": "[", "rB": "]", "ba": "|", "hy": "-", "at": "@", "sh": "#",
}  # fmt: skip
_TOKEN = re.compile(r'"((?:[^"]|"")*)(?:"|$)|\S+')
_ESCAPE = re.compile(r"\\(?:f(?:\((..)|\[([^]]*)\]|.)|\((..)|\[([^]]+)\]|(.))")

CLOSERS = frozenset(".,:;)]?!")
"""Signs that cling to the word before them."""
_OPENERS = frozenset("([")
_AROUND = {
    "Op": ("[", "]"), "Dq": ("\u201c", "\u201d"), "Sq": ("\u2018", "\u2019"), "Ql": ("\u2018", "\u2019"),
    "Qq": ('"', '"'), "Pq": ("(", ")"), "Bq": ("[", "]"), "Brq": ("{", "}"), "Aq": ("\u27e8", "\u27e9"),
}  # fmt: skip
_OPEN = {"Oo": "[", "Po": "(", "Do": "\u201c", "So": "\u2018", "Bo": "[", "Qo": '"', "Bro": "{"}
_CLOSE = {"Oc": "]", "Pc": ")", "Dc": "\u201d", "Sc": "\u2019", "Bc": "]", "Qc": '"', "Brc": "}"}
_WORDS = {
    "Ad", "An", "Ar", "Cd", "Cm", "Dv", "Em", "Er", "Ev", "Fa", "Fn", "Ic", "Li", "Lk", "Mt", "No", "Nm", "Pa", "Sx",
    "Sy", "St", "Tn", "Va", "Vt", "Xo", "Xc",
}  # fmt: skip
_INLINE = _WORDS | {"Fl", "Xr", "Ns", "Pf", "Ap", "Ex", "Nd", *_AROUND, *_OPEN, *_CLOSE}


@dataclass(slots=True)
class Words:
    """Words and the spaces between them: closing signs cling to the left, opening ones to the right."""

    pieces: list[str] = field(default_factory=list)
    glued: bool = True

    def text(self) -> str:
        """Return the words so far."""
        return "".join(self.pieces).strip()

    def put(self, word: str) -> None:
        """Add a word, with a space before it unless something holds it to what stands there."""
        self.pieces.append(word if self.glued or word in CLOSERS else f" {word}")
        self.glued = word in _OPENERS

    def glue(self) -> None:
        """Let the next word cling to this one."""
        self.glued = True

    def add_text(self, line: str) -> None:
        """Add a line of plain text."""
        self.put(unescaped(line.strip()))

    def add(self, run: list[str], name: str) -> None:
        """Add a run of inline macros."""
        at = 0
        while at < len(run):
            word = run[at]
            at += 1
            if word in _AROUND:
                rest = run[at:]
                after = _trailing(rest)
                self._enclosed(_AROUND[word], rest[: len(rest) - len(after)], after, name)
                return
            if word in _OPEN:
                self.put(_OPEN[word])
                self.glue()
            elif word in _CLOSE:
                self.glue()
                self.put(_CLOSE[word])
            elif word == "Ns":
                self.glue()
            elif word == "Ap":
                self.glue()
                self.put("'")
                self.glue()
            elif word == "Pf" and at < len(run):
                self.put(unescaped(run[at]))
                self.glue()
                at += 1
            elif word in _INLINE:
                arguments = _arguments(run[at:])
                at += len(arguments)
                for shown in _expanded(word, arguments, name):
                    self.put(unescaped(shown))
            else:
                self.put(unescaped(word))

    def _enclosed(self, signs: tuple[str, str], inside: list[str], after: list[str], name: str) -> None:
        self.put(signs[0] + inline(inside, name) + signs[1])
        for sign in after:
            self.put(sign)


def inline(run: list[str], name: str) -> str:
    """Return a run of inline macros as text; `name` is what the page describes."""
    words = Words()
    words.add(run, name)
    return words.text()


def _expanded(macro: str, arguments: list[str], name: str) -> Iterator[str]:
    """Yield the words that a macro with its arguments stands for."""
    match macro:
        case "Fl":
            yield from (f"-{argument}" for argument in arguments or [""])
        case "Nm":
            yield from arguments or [name]
        case "Ar":
            yield from arguments or ["file", "..."]
        case "Xr" if len(arguments) > 1:
            yield f"{arguments[0]}({arguments[1]})"
        case "Lk" if len(arguments) > 1:
            yield f"{' '.join(arguments[1:])}: {arguments[0]}"
        case "Ex":
            yield f"The {name} utility exits 0 on success, and >0 if an error occurs."
        case _:
            yield from arguments


def _arguments(run: list[str]) -> list[str]:
    """Return the words up to the next macro or sign of punctuation."""
    for index, word in enumerate(run):
        if word in _INLINE or word in CLOSERS or word in _OPENERS or word == "|":
            return run[:index]
    return run


def _trailing(run: list[str]) -> list[str]:
    """Return the closing signs at the end of a line, which stand outside of an enclosure."""
    count = 0
    while count < len(run) and run[-1 - count] in CLOSERS:
        count += 1
    return run[len(run) - count :]


def tokens(line: str) -> list[str]:
    """Split a macro line into words; quotes hold words together."""
    return [match[0] if match[1] is None else match[1].replace('""', '"') for match in _TOKEN.finditer(line)]


def unescaped(text: str) -> str:
    """Replace roff escapes by what they stand for, and leave out what follows a comment."""

    def sign(match: re.Match[str]) -> str:
        name = match[3] or match[4] or match[5]
        return _ESCAPES.get(name, name) if name else ""  # a change of font is no sign

    return _ESCAPE.sub(sign, text.partition('\\"')[0])
