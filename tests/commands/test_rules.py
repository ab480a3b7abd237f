"""`llmshed rules` and `llmshed dashboard`: what is printed is what the tools read."""

import json
from pathlib import Path
from typing import Any

import pytest

from fakes.promtool import check_rules, needs_promtool


@needs_promtool
def test_the_printed_rules_are_read_by_prometheus(cli: Any, tmp_path: Path) -> None:
    printed = cli("rules", "--objective", "0.995", "--interval", "15")
    assert printed.exit_code == 0
    assert "interval: 15s" in printed.stdout
    assert "> 14.4 * 0.005" in printed.stdout
    check_rules(printed.stdout, tmp_path)


@pytest.mark.parametrize("share", ["1", "0.3", "nan", "half"])
def test_a_share_that_is_none_is_refused(cli: Any, share: str) -> None:
    assert cli("rules", "--objective", share).exit_code == 64


def test_the_dashboard_is_json(cli: Any) -> None:
    printed = cli("dashboard")
    assert printed.exit_code == 0
    assert json.loads(printed.stdout)["uid"] == "llmshed-overload"
