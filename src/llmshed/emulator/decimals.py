"""Numbers as Rust writes them, in headers and metrics."""

from decimal import Decimal


def decimal_text(value: float) -> str:
    """Write a finite number without an exponent, and without a fraction where there is none.

    The digits are the fewest that give the same double, in Rust as in Python; only Python takes to exponents
    below 0.0001 and from 1e16 on.
    """
    return str(int(value)) if value == int(value) else format(Decimal(repr(float(value))), "f")
