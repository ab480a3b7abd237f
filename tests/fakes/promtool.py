"""Prometheus' own reader of rules and queries; whoever asks is skipped where it is absent."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llmshed.observability.metrics import Metrics

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (package prometheus) is absent")


def check_rules(text: str, folder: Path) -> str:
    """Return what promtool says of a rule file that it takes."""
    file = folder / "rules.yml"
    file.write_text(text)
    ran = subprocess.run(["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def check_queries(queries: list[str], folder: Path) -> None:
    """Let promtool parse queries, each as a rule."""
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    check_rules(json.dumps({"groups": [{"name": "queries", "rules": rules}]}), folder)


def unit_test(rules: str, test: dict[str, Any], folder: Path) -> None:
    """Run one of Prometheus' unit tests of rules, in its form but for the rule file."""
    (folder / "rules.yml").write_text(rules)
    file = folder / "test.yml"
    file.write_text(json.dumps({"rule_files": ["rules.yml"], "evaluation_interval": "30s", "tests": [test]}))
    ran = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def names_in(query: str) -> set[str]:
    """Return the gateway's metrics that a query names, recorded ones left out."""
    return set(re.findall(r"(?<![:\w])llmshed_\w+(?!:)", query))


def exported() -> set[str]:
    """Return every series name of a gateway, those that only a state brings included."""
    names: set[str] = set()
    for metric in Metrics().registry.collect():
        parts = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(metric.type, ("",))
        names |= {metric.name + part for part in parts}
    return names
