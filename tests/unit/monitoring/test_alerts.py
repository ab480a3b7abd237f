"""The alerts, raised and not raised by Prometheus on series that are calm or not."""

from pathlib import Path

import pytest

from fakes.promtool import needs_promtool, unit_test
from llmshed.monitoring.alerts import alerts
from llmshed.monitoring.rule_file import RUNBOOK, rule_file

RULES = rule_file(0.99, 0.9)


@needs_promtool
@pytest.mark.parametrize(("good", "told"), [(60, "nobody"), (54, "nobody"), (45, "somebody"), (0, "somebody")])
def test_a_page_when_objectives_are_missed_fast(good: int, told: str, tmp_path: Path) -> None:
    """Two requests a second for two hours; 14.4 % may be missed before somebody is woken by the windows of an hour."""
    labels = 'lane="interactive",priority_class="normal"'
    name = "LlmshedInteractiveObjectivesMissed1h"
    missed = f"{round(100 * (60 - good) / 60, 2):g}%"
    alert = {
        "exp_labels": {"severity": "page", "lane": "interactive"},
        "exp_annotations": {
            "summary": f"Lane interactive: of the last 1h {missed} missed its objectives.",
            "action": "`llmshed status` says what each pool holds and refuses now.",
            "runbook": f"{RUNBOOK}objectivesmissed",
        },
    }
    test = {
        "interval": "30s",
        "input_series": [
            {"series": f"llmshed_objective_requests_total{{{labels}}}", "values": "0+60x240"},
            {"series": f"llmshed_good_requests_total{{{labels}}}", "values": f"0+{good}x240"},
        ],
        "alert_rule_test": [
            {"eval_time": "2h", "alertname": name, "exp_alerts": [alert] if told == "somebody" else []}
        ],
    }
    unit_test(RULES, test, tmp_path)


@needs_promtool
def test_three_requests_in_an_hour_wake_nobody(tmp_path: Path) -> None:
    labels = 'lane="interactive",priority_class="normal"'
    test = {
        "interval": "20m",
        "input_series": [
            {"series": f"llmshed_objective_requests_total{{{labels}}}", "values": "0+1x12"},
            {"series": f"llmshed_good_requests_total{{{labels}}}", "values": "0+0x12"},
        ],
        "alert_rule_test": [
            {"eval_time": "3h", "alertname": f"LlmshedInteractiveObjectivesMissed{window}", "exp_alerts": []}
            for window in ("1h", "6h", "1d", "3d")
        ],
    }
    unit_test(RULES, test, tmp_path)


@needs_promtool
@pytest.mark.parametrize(
    ("name", "series", "calm", "bad", "labels"),
    [
        ("LlmshedPoolWithoutReplica", 'llmshed_replica_up{pool="p",replica="a"}', "1", "0", {"pool": "p"}),
        ("LlmshedReplicaDown", 'llmshed_replica_up{pool="p",replica="a"}', "1", "0", {"pool": "p", "replica": "a"}),
        ("LlmshedBudgetShrunk", 'llmshed_replica_budget_factor{replica="a"}', "0.8", "0.5", {"replica": "a"}),
        ("LlmshedInvariantBroken", 'llmshed_invariant_violations{instance="g"}', "0", "2", {"instance": "g"}),
        ("LlmshedReplicaMetricsBlind", 'llmshed_replica_metrics_up{replica="a"}', "1", "0", {"replica": "a"}),
        ("LlmshedConfigRefused", 'llmshed_config_last_reload_successful{instance="g"}', "1", "0", {"instance": "g"}),
        ("LlmshedLadderUp", 'llmshed_ladder_rung{pool="p"}', "0", "2", {"pool": "p"}),
        (
            "LlmshedLadderStale",
            'llmshed_ladder_evaluation_stale{pool="p",rung="small",why="missing"}',
            "0",
            "1",
            {"pool": "p", "rung": "small", "why": "missing"},
        ),
        (
            "LlmshedProfileMismatch",
            'llmshed_profile_match{replica="a",kind="model",state="mismatch"}',
            "0",
            "1",
            {"replica": "a", "kind": "model"},
        ),
    ],
)
def test_what_makes_the_numbers_untrue_is_told_once_it_lasts(
    name: str, series: str, calm: str, bad: str, labels: dict[str, str], tmp_path: Path
) -> None:
    (alert,) = (one for one in alerts(0.99, 0.9) if one.name == name)
    value = f"{float(bad):g}"
    summary = alert.summary.replace("{{ $value | humanizePercentage }}", "50%").replace("{{ $value }}", value)
    for label, word in labels.items():
        summary = summary.replace(f"{{{{ $labels.{label} }}}}", word)
    told = {
        "exp_labels": {"severity": str(alert.severity), **labels},
        "exp_annotations": {
            "summary": summary,
            "action": alert.action,
            "runbook": RUNBOOK + alert.explained_at.lower(),
        },
    }
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": f"{calm}x20 {bad}x20"}],
        "alert_rule_test": [
            {"eval_time": "20m", "alertname": name, "exp_alerts": []},
            {"eval_time": "40m", "alertname": name, "exp_alerts": [told]},
        ],
    }
    unit_test(RULES, test, tmp_path)
