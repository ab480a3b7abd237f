"""What a gateway answers about its ladders, as lines for people."""

from collections.abc import Iterator
from typing import Any

from ._spans import written_span

REHEARSED_SECONDS = 600
"""How far back a dry run looks where the gateway remembers as much."""


def status_lines(told: dict[str, Any]) -> Iterator[str]:
    """Tell where each pool stands."""
    for pool in told["pools"]:
        if pool.get("ladder") is None:
            yield f"{pool['pool']}: no ladder"
            continue
        yield f"{pool['pool']}: rung {pool['rung']} of ladder {pool['ladder']}, by the rule {pool['by_rule']}"
        for rung in pool["rungs"]:
            mark = ">" if rung["in_force"] else " "
            yield f"  {mark} {rung['number']:>2}  {rung['name']:<24}  {rung['action']:<17}  {rung['owner']}"
        if (hold := pool["hold"]) is not None:
            left = written_span(hold["remaining_seconds"])
            yield f"  held by hand: {hold['rung']}, {left} left: {hold['reason']}"
        if (window := pool["window"]) is not None:
            yield f"  {_window_line(window)}"
            yield f"  windows in a row: {pool['above_windows']} above, {pool['calm_windows']} calm" + (
                f"; a step back takes {pool['exit_windows']}" if pool["exit_windows"] else ""
            )
        for stale in pool["stale"]:
            yield f"  stale evaluation of {stale['rung']}: {stale['detail']}"
    if told["state_file"] is None:
        yield "Holds do not survive a restart: ladder.state_file is not set."
    if told["trouble"]:
        yield f"Trouble: {told['trouble']}"


def _window_line(window: dict[str, Any]) -> str:
    signal = "beyond any wait" if window["endless"] else _seconds(window["signal_seconds"])
    state = "above" if window["above"] else "calm" if window["calm"] else "between"
    room = "unknown" if window["service_tokens_per_second"] is None else f"{window['service_tokens_per_second']:,.0f}"
    offered = f"offered {window['offered_tokens_per_second']:,.0f} tokens/s, served under pressure {room}"
    judged = f"signal {signal}, objective {_seconds(window['objective_seconds'])}: {state}"
    return f"last window: {window['arrivals']} arrivals, {judged}; {offered}"


def rehearsal_lines(told: dict[str, Any]) -> Iterator[str]:
    """Tell what a rung would have done."""
    rehearsal = told["rehearsal"]
    past = written_span(rehearsal["past_seconds"])
    names = _names(told["in_force"])
    yield f"{told['pool']}: rung {told['number']} of ladder {told['ladder']}; in force would be {names}"
    served, tokens = rehearsal["served"], rehearsal["served_tokens"]
    yield f"In the last {past} it served {served:,} requests of {tokens:,} reserved tokens."
    if rehearsal["past_seconds"] < REHEARSED_SECONDS:
        yield f"No more than {past} of decisions are at hand, so what was before is not counted."
    for effect in rehearsal["effects"]:
        if effect["requests"] is None:
            yield f"  {effect['rung']:<24} unknown: {effect['unknown']}"
            continue
        less = "" if effect["tokens"] is None else f", {effect['tokens']:,} reserved tokens less"
        yield f"  {effect['rung']:<24} {effect['requests']:,} requests{less}"
        if effect["unknown"]:
            yield f"  {'':<24} ({effect['unknown']})"
    yield from (f"warning: {warning}" for warning in told["warnings"])
    yield "Nothing was changed."


def trigger_lines(told: dict[str, Any]) -> Iterator[str]:
    """Tell what is held now, and how it ends."""
    yield (
        f"{told['pool']}: rung {told['number']} ({told['rung']}) of ladder {told['ladder']} is held for"
        f" {written_span(told['for_seconds'])}; in force: {_names(told['in_force'])} (rung {told['before']} before)"
    )
    yield f"It ends by itself, or by `llmshed ladder release --pool {told['pool']}`."


def release_lines(told: dict[str, Any]) -> Iterator[str]:
    """Tell what was given up."""
    released = told["released"]
    if released is None:
        yield f"{told['pool']}: nothing was held; rung {told['after']} is in force by the rule"
        return
    yield f"{told['pool']}: rung {released['rung']} is given up; in force: {_names(told['in_force'])}"


def history_lines(told: dict[str, Any]) -> Iterator[str]:
    """Tell what was done, a line an entry."""
    if not told["entries"]:
        yield "Nothing has been done yet."
    for entry in told["entries"]:
        change = "" if entry["before"] is None else f"  {entry['before']} -> {entry['after']}"
        words = [entry["rung"], entry["cause"] if entry["what"] == "step" else None, _for(entry["for_seconds"])]
        if entry["before"] is not None and entry["before"] == entry["after"]:
            words.append(f"by rule {entry['by_rule']}")  # hidden by a higher rung
        told_words = "  ".join(word for word in words if word)
        why = "" if not entry["reason"] else f"  ({entry['reason']})"
        who = "" if not entry["who"] else f"  by {entry['who']}"
        yield f"{entry['time']}  {entry['pool'] or 'all'}  {entry['what']}{change}  {told_words}{who}{why}".rstrip()


def _for(seconds: float | None) -> str | None:
    return None if seconds is None else f"for {written_span(seconds)}"


def _names(names: list[str]) -> str:
    return ", ".join(names) if names else "none"


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds:.2f} s"
