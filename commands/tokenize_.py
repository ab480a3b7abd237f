"""`llmshed tokenize`."""


def tokenize() -> None:
    """Replaced by the verb's own change."""
