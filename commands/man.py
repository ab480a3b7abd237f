"""`llmshed man`."""


def man() -> None:
    """Replaced by the verb's own change."""
