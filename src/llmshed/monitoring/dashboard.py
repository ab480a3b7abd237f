"""A dashboard for Grafana, in the order in which an overload occurs."""

from typing import Any, NamedTuple

UID = "llmshed-overload"
SCHEMA_VERSION = 39
"""Of Grafana 10.4 and later; older ones are migrated by Grafana itself."""
_COLUMNS, _WIDTH, _HEIGHT = 24, 8, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


class Query(NamedTuple):
    """One line of a panel: the query and the words that label it."""

    expr: str
    legend: str


class Panel(NamedTuple):
    """One drawing: what it shows, in which unit of Grafana's, and what to look for in it."""

    title: str
    unit: str
    reading: str
    queries: tuple[Query, ...]


class Row(NamedTuple):
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


_LANE = 'lane=~"$lane"'
_POOL = 'pool=~"$pool"'
_REPLICA = 'pool=~"$pool",replica=~"$replica"'


def _p95(metric: str, by: str, selector: str) -> str:
    return f"histogram_quantile(0.95, sum by ({by}, le) (rate({metric}_bucket{{{selector}}}[$__rate_interval])))"


def _rate(metric: str, by: str, selector: str) -> str:
    return f"sum by ({by}) (rate({metric}{{{selector}}}[$__rate_interval]))"


ROWS = (
    Row(
        "1. Arrivals",
        (
            Panel(
                "Requests by decision",
                "reqps",
                "Refusals that rise here before the queues age are the gateway doing its work.",
                (Query(_rate("llmshed_requests_total", "lane, decision", _LANE), "{{lane}} {{decision}}"),),
            ),
            Panel(
                "Refusals by reason",
                "reqps",
                "The term that binds: seats, tokens, prompts or the queue itself.",
                (
                    Query(
                        _rate("llmshed_requests_total", "reason", f'{_LANE},decision!="admit",reason!="none"'),
                        "{{reason}}",
                    ),
                ),
            ),
            Panel(
                "Amplification",
                "none",
                "1 while nobody retries; above 2 most of what arrives is the echo of refusals.",
                (
                    Query(
                        f"1 + {_rate('llmshed_client_retries_total', 'lane', _LANE)}"
                        f" / {_rate('llmshed_first_arrivals_total', 'lane', _LANE)}",
                        "{{lane}}",
                    ),
                ),
            ),
            Panel(
                "Input tokens, p95",
                "none",
                "A change of mix shows here first; every threshold was made for the old one.",
                (Query(_p95("llmshed_input_tokens", "lane", _LANE), "{{lane}}"),),
            ),
            Panel(
                "Output ceilings asked for, p95",
                "none",
                "Ceilings are reserved whole, used or not.",
                (Query(_p95("llmshed_requested_output_tokens", "lane", _LANE), "{{lane}}"),),
            ),
            Panel(
                "Offered demand in tokens a second",
                "none",
                "What clients want, refused work included and repeats taken out.",
                (Query(f"lane:llmshed_offered_tokens:rate5m{{{_LANE}}}", "{{lane}}"),),
            ),
        ),
    ),
    Row(
        "2. Queues",
        (
            Panel(
                "Requests that wait",
                "none",
                "Bounded: a queue that is full refuses.",
                (Query(f"sum by (pool, lane) (llmshed_queue_depth{{{_LANE},{_POOL}}})", "{{pool}} {{lane}}"),),
            ),
            Panel(
                "Age of the oldest",
                "s",
                "Near the lane's longest wait, requests time out in the queue.",
                (
                    Query(
                        f"max by (pool, lane) (llmshed_queue_oldest_age_seconds{{{_LANE},{_POOL}}})",
                        "{{pool}} {{lane}}",
                    ),
                ),
            ),
            Panel(
                "Prompt tokens that wait",
                "none",
                "Divided by the prefill rate: the seconds until the last of them is let in.",
                (
                    Query(
                        f"sum by (pool, lane) (llmshed_queued_prefill_tokens{{{_LANE},{_POOL}}})", "{{pool}} {{lane}}"
                    ),
                ),
            ),
        ),
    ),
    Row(
        "3. Engine",
        (
            Panel(
                "Time to first token, p95",
                "s",
                "From arrival at the gateway: counting and queueing are in it.",
                (Query(_p95("llmshed_ttft_seconds", "lane", _LANE), "{{lane}}"),),
            ),
            Panel(
                "Time per output token, p95",
                "s",
                "Rises with prompts beside running streams, and with more streams than the profile holds for.",
                (Query(_p95("llmshed_tpot_seconds", "lane", _LANE), "{{lane}}"),),
            ),
            Panel(
                "Reserved tokens of the safe budget",
                "percentunit",
                "1 is all that policy may lend. Full, with an engine at ease: the budget is what binds.",
                (
                    Query(
                        f"sum by (replica) (llmshed_active_tokens{{{_REPLICA}}})"
                        f" / sum by (replica) (llmshed_budget_tokens{{{_REPLICA}}})",
                        "{{replica}}",
                    ),
                ),
            ),
            Panel(
                "Bulk's part of the prefill",
                "percentunit",
                "Between its floor and its cap while both lanes have work.",
                (Query(f"llmshed_bulk_prefill_ratio{{{_REPLICA}}}", "{{replica}}"),),
            ),
            Panel(
                "Budget left by signals",
                "percentunit",
                "Below 1: the engine tells of a queue, a full cache, preemptions or a stall that is not explained.",
                (Query('llmshed_replica_budget_factor{replica=~"$replica"}', "{{replica}}"),),
            ),
            Panel(
                "Attainment",
                "percentunit",
                "Share of the requests that met their objectives; refusals for want of room count as missed.",
                (
                    Query(
                        f"{_rate('llmshed_good_requests_total', 'lane', _LANE)}"
                        f" / {_rate('llmshed_objective_requests_total', 'lane', _LANE)}",
                        "{{lane}}",
                    ),
                ),
            ),
        ),
    ),
    Row(
        "4. Ladder",
        (
            Panel(
                "Rung in force",
                "none",
                "0 in calm times. Above the rule's own rung somebody holds one.",
                (
                    Query(f"llmshed_ladder_rung{{{_POOL}}}", "{{pool}}"),
                    Query(f"llmshed_ladder_by_rule_rung{{{_POOL}}}", "{{pool}} by rule"),
                ),
            ),
            Panel(
                "Queue delay signal of its objective",
                "percentunit",
                "Above 1 for as many windows as the next rung asks for, the pool climbs.",
                (
                    Query(
                        f"llmshed_ladder_signal_seconds{{{_POOL}}} / llmshed_ladder_objective_seconds{{{_POOL}}}",
                        "{{pool}}",
                    ),
                ),
            ),
            Panel(
                "Requests that rungs changed or refused",
                "reqps",
                "Quality first, then bulk's wait, then who is refused: in the order of the ladder.",
                (
                    Query(_rate("llmshed_degraded_requests_total", "action", _LANE), "{{action}}"),
                    Query(
                        _rate("llmshed_shed_requests_total", "lane, priority_class", _LANE),
                        "{{lane}} {{priority_class}}",
                    ),
                ),
            ),
        ),
    ),
    Row(
        "5. The gateway itself",
        (
            Panel(
                "Counting, p95",
                "s",
                "Waiting for and running the token count: a tokenizer that is short of CPU shows here.",
                (Query(_p95("llmshed_counting_seconds", "instance", ""), "{{instance}}"),),
            ),
            Panel(
                "Lateness of the event loop, p99",
                "s",
                "Above some milliseconds the machine is short of CPU.",
                (
                    Query(
                        "histogram_quantile(0.99, sum by (instance, le) "
                        "(rate(llmshed_loop_lag_seconds_bucket[$__rate_interval])))",
                        "{{instance}}",
                    ),
                ),
            ),
            Panel(
                "Replicas up",
                "none",
                "0 while the pool refuses everything.",
                (Query(f"sum by (pool) (llmshed_replica_up{{{_POOL}}})", "{{pool}}"),),
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it; its data source is chosen there."""
    panels: list[dict[str, Any]] = []
    top = 0
    for row in ROWS:
        panels.append(_heading(row.title, top))
        top += 1
        for place, panel in enumerate(row.panels):
            line, column = divmod(place * _WIDTH, _COLUMNS)
            panels.append(_drawn(panel, column, top + line * _HEIGHT))
        top += -(-len(row.panels) * _WIDTH // _COLUMNS) * _HEIGHT
    return {
        "uid": UID,
        "title": "llmshed: overload in the order in which it occurs",
        "tags": ["llmshed"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_data_source(), *map(_variable, ("lane", "pool", "replica"))]},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, 1)],
    }


def _heading(title: str, top: int) -> dict[str, Any]:
    place = {"h": 1, "w": _COLUMNS, "x": 0, "y": top}
    return {"type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}


def _drawn(panel: Panel, column: int, top: int) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.reading,
        "datasource": _SOURCE,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": column, "y": top},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": _SOURCE, "expr": query.expr, "legendFormat": query.legend}
            for number, query in enumerate(panel.queries)
        ],
    }


def _data_source() -> dict[str, Any]:
    return {"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus"}


def _variable(label: str) -> dict[str, Any]:
    source = "llmshed_replica_up" if label != "lane" else "llmshed_first_arrivals_total"
    return {
        "type": "query",
        "name": label,
        "label": label,
        "datasource": _SOURCE,
        "query": {"query": f"label_values({source}, {label})", "refId": label},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    }
