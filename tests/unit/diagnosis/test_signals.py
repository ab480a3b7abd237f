"""Every signal can be asked for: Prometheus parses it, the gateway exports what it names, engines spell it so."""

import re
from pathlib import Path

import pytest

from fakes.promtool import check_queries, exported, names_in, needs_promtool
from llmshed.diagnosis.signals import SIGNALS, Stage, written


@needs_promtool
@pytest.mark.parametrize("selector", ["", 'job="llmshed",site=~"a|b"'])
def test_prometheus_parses_every_query(selector: str, tmp_path: Path) -> None:
    queries = [written(signal, 60, selector) for signal in SIGNALS]
    assert not [query for query in queries if "$" in query]
    check_queries(queries, tmp_path)


def test_every_metric_of_the_gateway_is_exported() -> None:
    named = {name for signal in SIGNALS for name in names_in(signal.query)}
    assert len(named) > 20
    assert named <= exported()


def test_a_selector_stands_at_every_series_of_the_gateway() -> None:
    for signal in SIGNALS:
        query = written(signal, 60, 'job="llmshed"')
        own = re.findall(r"llmshed_\w+(?:\{([^}]*)\})?", query)
        assert all('job="llmshed"' in matchers for matchers in own), signal.name


def test_the_order_is_arrivals_queues_engine() -> None:
    order = [signal.stage for signal in SIGNALS]
    assert order == sorted(order, key=list(Stage).index)
    assert len({signal.name for signal in SIGNALS}) == len(SIGNALS)
