"""`llmshed simulate`."""


def simulate() -> None:
    """Replaced by the verb's own change."""
