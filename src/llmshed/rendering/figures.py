"""Figures as people read them: three digits that matter, a dash for what was not measured."""

from llmshed.whatif.compare import Change, Unit

UNKNOWN = "-"


def number(value: float | None) -> str:
    """Return a rate, a duration in seconds or a mean: to a thousandth below 1, from 100 on without decimals."""
    if value is None:
        return UNKNOWN
    size = abs(value)
    decimals = 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    text = f"{value:,.{decimals}f}"
    return "0" if float(text.replace(",", "")) == 0 else text


def count(value: float | None) -> str:
    """Return a whole number with its thousands marked."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def share(value: float | None) -> str:
    """Return a share in percent, to a tenth; what is not quite all or nothing does not read as such."""
    if value is None:
        return UNKNOWN
    percent = value * 100
    if 0 < percent < 0.05:
        return "<0.1 %"
    if 99.95 <= percent < 100:
        return ">99.9 %"
    return f"{percent:.1f} %"


def factor(value: float) -> str:
    """Return a scale, `2x`."""
    return f"{value:g}x"


def duration(seconds: float) -> str:
    """Return a long time as hours, minutes and seconds, the largest two that matter."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {left} s"
    return f"{number(seconds)} s"


def measured(unit: Unit, value: float | None) -> str:
    """Return a measure in its unit."""
    match unit:
        case Unit.SHARE:
            return share(value)
        case Unit.COUNT:
            return count(value)
        case Unit.PER_SECOND:
            return number(value)
        case Unit.SECONDS:
            return UNKNOWN if value is None else f"{number(value)} s"


def changed(change: Change) -> str:
    """Return a change with its sign: percent of the base, or percentage points of a share."""
    if change.change is None:
        return UNKNOWN
    # z: what rounds to nothing is no fall.
    return f"{change.change * 100:+z.1f} {'points' if change.measure.unit is Unit.SHARE else '%'}"
