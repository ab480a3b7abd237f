"""Tries a chat template in a process of its own, which is killed when the template works too long or takes too much.

A template is a program. A sandbox keeps it from everything but work: `{{ (10**(10**7))%7 }}` takes half a minute inside
one operation, which nothing in the same process can end. So a template that an operator brings renders the probe chats
in a child first. A timer of the processor time that the child used kills it by a signal that it does not handle; a
busy machine, which makes everything slow, does not count.
"""

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import orjson

from llmshed.errors import PromptError, TokenizerError
from llmshed.tokenizing.files import EngineName, TokenizerFiles
from llmshed.tokenizing.probes import PROBE_CHATS
from llmshed.tokenizing.prompts import ChatPrompt
from llmshed.tokenizing.refusal import EndlessTemplateError
from llmshed.tokenizing.renderers import TemplateOf, renderer

RENDER_SECONDS: Final = 0.25
"""Processor time that rendering one probe chat may take; public templates take a few milliseconds."""
RENDER_BYTES: Final = 256 * 2**20
"""Memory that a child may take beyond what it has when it begins to render."""
_PROCESS_SECONDS: Final = 60.0
"""Bound on the whole trial, for a child that waits instead of working; no template can."""
_OUT_OF_MEMORY: Final = 3
_TOO_MANY_STEPS: Final = 4


def try_template(files: TokenizerFiles, engine: EngineName, chats: Mapping[str, ChatPrompt] = PROBE_CHATS) -> None:
    """Render chats with the template that this engine takes; blocks for some tenths of a second.

    What the template refuses is fine: only work beyond `RENDER_SECONDS` for a chat, or memory beyond `RENDER_BYTES`, is
    not. Without a template there is nothing to try.

    Raises:
        TokenizerError: the template is too dear to render, or cannot be read; the text says which chat it was.
    """
    template = TemplateOf.found(files, engine)
    if template is None:
        return
    asked = orjson.dumps([template._asdict(), [[name, _wire(chat)] for name, chat in chats.items()]])
    command = (sys.executable, "-m", __name__)
    try:
        ran = subprocess.run(  # noqa: S603 - our own interpreter and module, without a shell
            command, input=asked, capture_output=True, timeout=_PROCESS_SECONDS, check=False
        )
        code, begun, said = ran.returncode, ran.stdout, ran.stderr
    except subprocess.TimeoutExpired as expired:
        code, begun, said = -signal.SIGKILL, expired.stdout or b"", expired.stderr or b""
    if code != 0:
        # The child names each chat before it renders it, so the last name is the one that was too much.
        where = f" for the probe {begun.split()[-1].decode()}" if begun.split() else ""
        raise TokenizerError(f"{files.name}: {template.source}: {_cause(code, said)}{where}; it is not used")


def _cause(code: int, said: bytes) -> str:
    if code == _OUT_OF_MEMORY:
        return f"the chat template takes more than {RENDER_BYTES // 2**20} MiB to render"
    if code == _TOO_MANY_STEPS:
        return "the chat template takes too many steps to render"
    if code == -signal.SIGPROF:
        return f"the chat template takes more than {RENDER_SECONDS * 1000:.0f} ms of processor time to render"
    if code < 0:
        return f"the process that tried the chat template was ended by {signal.Signals(-code).name}"
    lines = said.decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {code}")
    return f"the chat template could not be tried ({last[:200]})"


def _wire(chat: ChatPrompt) -> dict[str, object]:
    return {"messages": chat.messages, "tools": chat.tools, "tool_choice": chat.tool_choice}


def _try(asked: bytes) -> int:
    """Compile the template and render every chat, in the child; returns its exit code, if it lives."""
    described, chats = orjson.loads(asked)
    template = TemplateOf(**described)
    _bound_memory()
    with _timer():  # compiling works out what is constant
        made = renderer(template)
    for name, chat in chats:
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        try:
            with _timer():
                made.render(ChatPrompt(**chat))
        except EndlessTemplateError:
            return _TOO_MANY_STEPS
        except PromptError as error:
            if MemoryError.__name__ in str(error):
                raise MemoryError from None
    return 0


@contextmanager
def _timer() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, RENDER_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


def _bound_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    _, hardest = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (pages * resource.getpagesize() + RENDER_BYTES, hardest))


if __name__ == "__main__":
    try:
        sys.exit(_try(sys.stdin.buffer.read()))
    except MemoryError:
        sys.exit(_OUT_OF_MEMORY)
