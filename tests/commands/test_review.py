"""`llmshed review`: a real Prometheus that holds an hour of a calm site and one of a site that lost replicas."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.incident_lines import exposition, hour
from fakes.prometheus import fill, free_port, needs_prometheus, running
from llmshed.clock import SystemClock


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    began = int(SystemClock().wall()) // 15 * 15 - 3600
    fill(folder, exposition(hour("calm", began, None), hour("lost", began, began + 2700)))
    with running(folder) as url:
        yield url


@needs_prometheus
@pytest.mark.slow
def test_what_was_refused_and_served_is_told(cli: Any, prometheus: str, tmp_path: Path) -> None:
    """Ten a second for an hour; in the last quarter of it three of five are refused."""
    page = tmp_path / "week.html"
    wanted = ("-p", prometheus, "--since", "1h", "--match", 'site="lost"')
    ran = cli("review", *wanted, "--json", "--html", str(page))
    assert ran.exit_code == 0, ran.stderr
    found = ran.json()
    assert found["schema"] == "llmshed.review/1"
    (refused,) = found["refused"]
    assert (refused["lane"], refused["reason"], refused["tokens"]) == ("interactive", "token_budget_exhausted", None)
    assert refused["requests"] == pytest.approx(5_400, rel=0.05)
    (served,) = found["served"]
    assert served["requests"] == pytest.approx(30_600, rel=0.05)
    assert served["good"] == pytest.approx(0.85, abs=0.02)
    (pool,) = found["pools"]
    assert pool["utilised"] == pytest.approx(0.75 * 0.5 + 0.25 * 58 / 60, abs=0.02)
    assert pool["idle"] == 0.0
    assert found["known_share"] is None  # this store holds no metric by which it is told
    assert "Refused, by reason" in page.read_text("utf-8")
    asked = cli("review", *wanted, "--capacity-request", "--model", "llama 8B")
    assert asked.stdout.startswith("# Request for capacity")
    assert "token_budget_exhausted" in asked.stdout


@needs_prometheus
@pytest.mark.slow
def test_a_calm_site_refused_nothing_and_one_that_is_not_there_is_unknown(cli: Any, prometheus: str) -> None:
    calm = cli("review", "-p", prometheus, "--since", "1h", "--match", 'site="calm"')
    assert calm.exit_code == 0, calm.stderr
    assert " and 0 refused" in calm.stdout
    assert "Refused, by reason" not in calm.stdout
    nowhere = cli("review", "-p", prometheus, "--since", "1h", "--match", 'site="nowhere"')
    assert nowhere.exit_code == 69
    assert "nothing is known of any gateway" in nowhere.stderr


def test_mistakes_are_named(cli: Any, tmp_path: Path) -> None:
    nobody = cli("review", "-p", f"http://127.0.0.1:{free_port()}")
    assert nobody.exit_code == 69
    assert "Traceback" not in nobody.stderr
    for wrong, words in (
        (("--since", "1y"), "--since '1y'"),
        (("--capacity-request", "--json"), "--capacity-request"),
        (("--html", str(tmp_path / "none" / "a.html")), "there is no directory"),
    ):
        ran = cli("review", *wrong)
        assert ran.exit_code != 0
        assert words in ran.stderr.replace("\n", " ")
