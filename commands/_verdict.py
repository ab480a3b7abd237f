"""A verdict as a table for people: a row a term, those that were not weighed left out."""

from collections.abc import Mapping
from typing import Any


def verdict_rows(report: Mapping[str, Any]) -> dict[str, object]:
    """Return names and values of the report of `llmshed classify` or of a gateway, in the order of the decision."""
    reason = report["reason"]
    rows: dict[str, object] = {
        "verdict": report["verdict"] if reason is None else f"{report['verdict']} ({reason})",
        "status": report["status"],
        "lane": report["lane"] or "none",
        "input tokens": report["input_tokens"],
        "output ceiling": _or_none(report["output_ceiling_tokens"]),
        "reservation": _or_none(report["reservation_tokens"]),
        "fits": "yes" if report["fits"] else "no",
        "why": report["detail"],
        "profile": report["profile"] or "none",
    }
    # A gateway of an earlier version tells none of these.
    window = _bulk_window if report["lane"] == "bulk" else _window
    for name, told in (("queue", _queue), ("window", window), ("delay", _delay)):
        if report.get(name) is not None:
            rows |= told(report[name])
    if report["retry_after_seconds"] is not None:
        rows["retry after"] = f"{report['retry_after_seconds']:.1f} s"
    if report["advice"]:
        rows["advice"] = ", ".join(report["advice"])
    return rows


def _queue(queue: Mapping[str, Any]) -> dict[str, object]:
    requests = f"{queue['requests']:,} of {queue['most_requests']:,} requests"
    tokens = f"{queue['tokens']:,} of {queue['most_tokens']:,} tokens"
    return {"queue": f"{requests}, {tokens}, each for at most {queue['max_residence_seconds']:g} s"}


def _window(window: Mapping[str, Any]) -> dict[str, object]:
    rate, most = window["tokens_per_second"], window["inflight_limit_tokens"]
    metered = "not metered" if rate is None else f"{window['level_tokens']:,.0f} tokens now, {rate:,.0f} a second"
    bound = "" if most is None else f" of {most:,}"
    return {"prefill window": f"{metered}; {window['inflight_tokens']:,}{bound} in flight"}


def _bulk_window(window: Mapping[str, Any]) -> dict[str, object]:
    """Return the row of the window, and what it leaves to bulk while its cap acts."""
    level, credit = window["bulk_level_tokens"], window["bulk_credit_tokens"]
    if level is None:
        return _window(window)
    return _window(window) | {"bulk in it": f"{level:,.0f} tokens under its cap, {credit:,.0f} of its floor"}


def _delay(delay: Mapping[str, Any]) -> dict[str, object]:
    """Return the rows of the delay estimate: the equation of docs/delay-estimate.md with its numbers."""
    rows: dict[str, object] = {
        "work ahead": f"{delay['tokens_ahead']:,} tokens, {delay['prefill_tokens_ahead']:,} of them prompts",
        "wait": f"{_seconds(delay['wait_seconds'])} = max(release {_seconds(delay['release_seconds'])}"
        f" / share {delay['share']:.2f}, prefill {_seconds(delay['prefill_seconds'])}) x factor {delay['factor']:.2f}",
        "own time": _seconds(delay["own_seconds"]),
    }
    if delay["promised_seconds"]:
        rows["promised before"] = _seconds(delay["promised_seconds"])
    return rows


def _seconds(seconds: float | None) -> str:
    return "without end" if seconds is None else f"{seconds:.2f} s"


def _or_none(tokens: int | None) -> int | str:
    return "none" if tokens is None else tokens
