"""The rule file: Prometheus reads it, every metric in it exists, and its rules do what their page says."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.promtool import check_rules, exported, names_in, needs_promtool
from llmshed.monitoring.alerts import alerts
from llmshed.monitoring.recording import recording_rules
from llmshed.monitoring.rule_file import RUNBOOK, rule_file

ROOT = Path(__file__).resolve().parents[3]
RULES = rule_file(0.99, 0.9)
LOADED: dict[str, Any] = yaml.safe_load(RULES)


def rules_of(kind: str) -> list[dict[str, Any]]:
    return [rule for group in LOADED["groups"] for rule in group["rules"] if kind in rule]


@needs_promtool
@pytest.mark.parametrize("objectives", [(0.99, 0.9), (0.5, 0.99999), (0.999, 0.5)])
def test_prometheus_reads_it(objectives: tuple[float, float], tmp_path: Path) -> None:
    number = len(recording_rules()) + len(alerts(*objectives))
    assert f"SUCCESS: {number} rules found" in check_rules(rule_file(*objectives), tmp_path)


def test_the_text_holds_what_the_tables_do() -> None:
    assert [(rule["record"], rule["expr"].rstrip("\n")) for rule in rules_of("record")] == list(recording_rules())
    told = alerts(0.99, 0.9)
    assert [(rule["alert"], rule["expr"].rstrip("\n")) for rule in rules_of("alert")] == [
        (alert.name, alert.expr) for alert in told
    ]
    assert [rule["annotations"]["summary"] for rule in rules_of("alert")] == [alert.summary for alert in told]


def test_every_metric_in_it_is_one_of_the_gateway() -> None:
    named = {name for rule in (*rules_of("record"), *rules_of("alert")) for name in names_in(rule["expr"])}
    assert len(named) > 20
    assert named <= exported()


def test_every_recorded_name_that_is_used_is_recorded() -> None:
    recorded = {rule["record"] for rule in rules_of("record")}
    used = set(re.findall(r"\w*:llmshed_\w+:\w+", " ".join(rule["expr"] for rule in rules_of("alert"))))
    assert used
    assert used <= recorded


def test_the_page_has_a_row_for_each_rule_and_a_heading_for_each_alert() -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text()
    headings = {heading.lower() for heading in re.findall(r"^### (\w+)$", page, re.MULTILINE)}
    assert {rule["annotations"]["runbook"] for rule in rules_of("alert")} == {RUNBOOK + one for one in headings}
    for rule in rules_of("record"):
        name = rule["record"]
        assert f"`{name}`" in page or "attainment" in name, name
