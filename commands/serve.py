"""`llmshed serve`."""


def serve() -> None:
    """Replaced by the verb's own change."""
