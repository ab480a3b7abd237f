"""A rule file for Prometheus, as text."""

import json
from collections.abc import Iterator

from llmshed.monitoring.alerts import Alert, alerts
from llmshed.monitoring.recording import RecordingRule, recording_rules

RUNBOOK = "docs/monitoring.md#"
"""Where each alert is explained, followed by its heading in lower case."""


def rule_file(interactive_objective: float, bulk_objective: float, interval: str = "30s") -> str:
    """Return recording rules and alerts as YAML.

    Args:
        interactive_objective: share of interactive requests that are to meet their objectives, above 0 and below 1.
        bulk_objective: the same for bulk.
        interval: how often Prometheus evaluates the rules.
    """
    lines = ["groups:"]
    lines += _group("llmshed-recording", interval, (line for rule in recording_rules() for line in _recorded(rule)))
    told = alerts(interactive_objective, bulk_objective)
    lines += _group("llmshed-alerts", interval, (line for alert in told for line in _alerted(alert)))
    return "\n".join(lines) + "\n"


def _group(name: str, interval: str, rules: Iterator[str]) -> list[str]:
    return [f"  - name: {name}", f"    interval: {interval}", "    rules:", *rules]


def _recorded(rule: RecordingRule) -> Iterator[str]:
    yield f"      - record: {rule.record}"
    yield from _block("expr", rule.expr)


def _alerted(alert: Alert) -> Iterator[str]:
    yield f"      - alert: {alert.name}"
    yield from _block("expr", alert.expr)
    yield f"        for: {alert.lasts}"
    yield "        labels:"
    yield f"          severity: {alert.severity}"
    yield "        annotations:"
    yield f"          summary: {json.dumps(alert.summary)}"
    yield f"          action: {json.dumps(alert.action)}"
    yield f"          runbook: {RUNBOOK}{alert.explained_at.lower()}"


def _block(name: str, text: str) -> Iterator[str]:
    """Yield a text of several lines as it stands, so that a person can read the query."""
    yield f"        {name}: |"
    yield from (f"          {line}" for line in text.splitlines())
