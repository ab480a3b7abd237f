"""Panics of the libraries that tokenize and render, told like any other failure on a prompt."""

from collections.abc import Iterator
from contextlib import contextmanager

from llmshed.errors import PromptError


@contextmanager
def panics_told(sentence: str) -> Iterator[None]:
    """Turn a panic of Rust code inside the block into a `PromptError` of this sentence.

    Python sees one as a BaseException, which no handler of a request catches. A pattern that backtracks makes the
    tokenizers library panic; its text could repeat the prompt, so it is not told.

    Raises:
        PromptError: the code panicked.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # made by pyo3 for each library, and not to be imported
            raise
        raise PromptError(sentence) from None
