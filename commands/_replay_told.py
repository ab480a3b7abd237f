"""How `llmshed replay` tells its result: tables for people, one object for machines."""

from typing import TYPE_CHECKING, Any

from llmshed.loadtest.tally import SHARES, LaneTally
from llmshed.rendering.figures import UNKNOWN, count, duration, number, share

from ._output import print_grid, print_json, print_note, print_table
from ._whatif_pace import pace_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

    from llmshed.loadtest.meter import Doing
    from llmshed.loadtest.tally import Tally

    from ._replay_run import Replayed, Wishes

SCHEMA = "llmshed.replay/1"
_KINDS = {"ttft": "TTFT", "itl": "ITL", "tpot": "TPOT", "end_to_end": "end to end"}


def print_replay(wishes: "Wishes", result: "Replayed", *, as_json: bool) -> None:
    """Print the result on stdout, and on stderr what takes from its worth."""
    if as_json:
        print_json(SCHEMA, as_object(wishes, result))
    else:
        print_table(_facts(wishes, result))
        for caption, columns, rows in _grids(result.tally):
            print_grid(caption, columns, rows)
    for warning in warnings(result):
        print_note(warning)


def warnings(result: "Replayed") -> list[str]:
    """Return what a reader of the figures has to know, one sentence each."""
    told = [f"generator_limited: {limit}" for limit in result.doing.limits]
    if result.interrupted:
        told.append("interrupted: these are the figures of what was sent by then")
    if result.raised:
        told.append(f"prompts made longer than in the source, since none is so short on the wire: {result.raised:,}")
    if result.tally.miscounted:
        told.append(
            f"{result.tally.miscounted:,} answers say that the prompt has other input tokens than it was made of: name"
            " the model's tokenizer by --tokenizer"
        )
    return told


def _facts(wishes: "Wishes", result: "Replayed") -> dict[str, object]:
    summary, yardstick = result.source.summary, result.yardstick
    kind = "gateway" if result.is_gateway else f"replica of {wishes.address.engine}"
    span = duration(summary.duration_seconds)
    idle = f"{number(yardstick.base_seconds)} s + {1000 * yardstick.token_seconds:.3g} s a thousand tokens"
    return {
        "target": f"{wishes.address.url}: {kind}, model {result.model}, {'chats' if result.chat else 'plain texts'}",
        "source": f"{wishes.source}: {result.source.format.name}, {summary.requests:,} requests in {span}",
        "arrivals": _arrivals(wishes, result),
        "output ceilings": "as long as in the source" if wishes.lengths.value == "trace" else result.ceiling.value,
        "clients": wishes.clients.value,
        "objectives": f"TTFT max(1 s, 5 x idle), TPOT {yardstick.tpot_seconds:g} s",
        "idle TTFT": idle if wishes.probe else "not measured (--no-probe): 1 s is the TTFT objective of all",
        "sent for": duration(result.tally.span_seconds),
        "generator": _doing(result.doing),
        "seed": wishes.seed,
    }


def _arrivals(wishes: "Wishes", result: "Replayed") -> str:
    pace = wishes.pace
    found = pace_of(pace.process, pace.rate_per_second, result.source)
    if found is None:
        return "as the source says" if pace.speed == 1.0 else f"as the source says, {pace.speed:g} times as fast"
    return f"{found.process.name} at {number(found.rate_per_second)} requests/s"


def _doing(doing: "Doing") -> str:
    late, lag = _ms(doing.lateness_p99), _ms(doing.lag_p99)
    verdict = "GENERATOR LIMITED" if doing.generator_limited else "not limited"
    return f"{verdict}: sends late by p99 {late}, loop lag p99 {lag}, CPU p90 {share(doing.cpu_p90)} of a core"


def _ms(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else f"{1000 * seconds:.3g} ms"


def _grids(tally: "Tally") -> "list[tuple[str, list[str], list[list[str]]]]":
    lanes = tally.lanes
    columns = ["", "requests", "tries", "finished", "good", "attained", "good/s", "good tok/s", "out tok/s"]
    seconds = tally.span_seconds
    rows = [[name, *_counts(lane, seconds)] for name, lane in lanes.items()]
    waits = [
        [f"{name} {_KINDS[kind]}", *(number(value) for value in sketch.quantiles(SHARES))]
        for name, lane in lanes.items()
        for kind, sketch in lane.waits().items()
        if sketch.count
    ]
    grids = [("Requests", columns, rows), ("Waits, in seconds from the planned instant", _wait_columns(), waits)]
    grids.append(("Tries that were not served, by reason", ["", "tries"], _reasons(lanes)))
    return [grid for grid in grids if grid[2]]


def _wait_columns() -> list[str]:
    return ["", *("longest" if one == 1.0 else f"p{100 * one:g}" for one in SHARES)]


def _counts(lane: LaneTally, seconds: float) -> list[str]:
    counted = (lane.visits, lane.tries, lane.finished, lane.good)
    rates = (lane.good, lane.good_tokens, lane.output_tokens)
    told = [number(one / seconds) if seconds else UNKNOWN for one in rates]
    return [*map(count, counted), share(lane.attained), *told]


def _reasons(lanes: "Mapping[str, LaneTally]") -> list[list[str]]:
    rows = []
    for name, lane in lanes.items():
        both: Counter[str] = lane.refusals + lane.failures
        rows += [[f"{name}: {reason}", count(tries)] for reason, tries in both.most_common()]
        if lane.cancelled:
            rows.append([f"{name}: cancelled by the generator", count(lane.cancelled)])
    return rows


def as_object(wishes: "Wishes", result: "Replayed") -> dict[str, Any]:
    """Return everything as one object."""
    summary, tally, doing = result.source.summary, result.tally, result.doing
    yardstick = result.yardstick
    return {
        "target": {
            "url": wishes.address.url,
            "kind": "gateway" if result.is_gateway else "replica",
            "engine": wishes.address.engine,
            "model": result.model,
            "api": "chat" if result.chat else "text",
        },
        "source": {
            "file": wishes.source,
            "format": result.source.format.name,
            "requests": summary.requests,
            "duration_seconds": summary.duration_seconds,
        },
        "arrivals": _arrivals(wishes, result),
        "ceiling": result.ceiling.value,
        "lengths": wishes.lengths.value,
        "prefixes": wishes.prefixes.value,
        "clients": wishes.clients.value,
        "seed": wishes.seed,
        "objectives": {
            "probed": wishes.probe,
            "idle_ttft_base_seconds": yardstick.base_seconds,
            "idle_ttft_token_seconds": yardstick.token_seconds,
            "tpot_seconds": yardstick.tpot_seconds,
        },
        "span_seconds": tally.span_seconds,
        "interrupted": result.interrupted,
        "generator_limited": doing.generator_limited,
        "generator": {
            "limits": list(doing.limits),
            "lateness_p50_seconds": doing.lateness_p50,
            "lateness_p99_seconds": doing.lateness_p99,
            "lag_p99_seconds": doing.lag_p99,
            "cpu_p90_ratio": doing.cpu_p90,
        },
        "warnings": warnings(result),
        "lanes": {name: _lane(lane, tally.span_seconds) for name, lane in tally.lanes.items()},
    }


def _lane(lane: LaneTally, seconds: float) -> dict[str, Any]:
    per_second = {
        "good_per_second": lane.good,
        "good_tokens_per_second": lane.good_tokens,
        "output_tokens_per_second": lane.output_tokens,
    }
    return {
        "requests": lane.visits,
        "tries": lane.tries,
        "finished": lane.finished,
        "cancelled": lane.cancelled,
        "counted": lane.counted,
        "good": lane.good,
        "attained_ratio": lane.attained,
        **{name: value / seconds if seconds else None for name, value in per_second.items()},
        "refused_tries": dict(lane.refusals),
        "failed_tries": dict(lane.failures),
        **{f"{kind}_seconds": _quantiles(sketch.quantiles(SHARES)) for kind, sketch in lane.waits().items()},
    }


def _quantiles(values: tuple[float | None, ...]) -> dict[str, float | None]:
    return {f"p{100 * at:g}": value for at, value in zip(SHARES, values, strict=True)}
