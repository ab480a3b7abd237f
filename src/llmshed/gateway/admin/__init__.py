"""The admin listener: what an operator asks of a running gateway."""
