"""The dashboard: JSON that Grafana imports, in the order in which an overload occurs."""

import itertools
import json
import re
from pathlib import Path

from fakes.promtool import check_queries, exported, names_in, needs_promtool
from llmshed.monitoring.dashboard import dashboard
from llmshed.monitoring.recording import recording_rules

DRAWN = dashboard()
DRAWINGS = [panel for panel in DRAWN["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in DRAWINGS for target in panel["targets"]]


def test_its_rows_are_arrivals_queues_engine() -> None:
    rows = [panel["title"] for panel in DRAWN["panels"] if panel["type"] == "row"]
    assert rows == ["1. Arrivals", "2. Queues", "3. Engine", "4. Ladder", "5. The gateway itself"]


def test_it_is_plain_json_with_ids_of_its_own() -> None:
    assert json.loads(json.dumps(DRAWN)) == DRAWN
    assert [panel["id"] for panel in DRAWN["panels"]] == list(range(1, len(DRAWN["panels"]) + 1))


def test_no_two_panels_lie_on_each_other_and_all_are_inside() -> None:
    cells = [
        (x, y)
        for panel in DRAWN["panels"]
        for place in [panel["gridPos"]]
        for x, y in itertools.product(
            range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        )
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23


def test_every_panel_says_how_to_read_it_and_asks_the_chosen_source() -> None:
    for panel in DRAWINGS:
        assert panel["description"].endswith(".")
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}


def test_every_metric_in_it_is_exported_or_recorded() -> None:
    names = {name for query in QUERIES for name in names_in(query)}
    assert len(names) > 15
    # Gauges of ledgers and queues are collected from the state, which a registry without one tells too.
    assert names <= exported()
    recorded = set(re.findall(r"\w*:llmshed_\w+:\w+", " ".join(QUERIES)))
    assert recorded <= {rule.record for rule in recording_rules()}
    sources = " ".join(one["query"]["query"] for one in DRAWN["templating"]["list"] if one["type"] == "query")
    assert names_in(sources) <= exported()


@needs_promtool
def test_prometheus_parses_every_query(tmp_path: Path) -> None:
    chosen = {"$__rate_interval": "2m", "$lane": "interactive|bulk", "$pool": ".*", "$replica": ".*"}
    queries = QUERIES
    for variable, value in chosen.items():
        queries = [query.replace(variable, value) for query in queries]
    assert not [query for query in queries if "$" in query]
    check_queries(queries, tmp_path)
