"""`llmshed classify`."""


def classify() -> None:
    """Replaced by the verb's own change."""
