"""The route label."""

from llmshed.gateway.door.routes import DATA_ROUTES
from llmshed.observability.routes import KNOWN_ROUTES, route_label


def test_the_labels_are_the_routes_of_the_data_listener() -> None:
    assert sorted(KNOWN_ROUTES) == sorted(DATA_ROUTES)


def test_only_routes_of_the_table_are_labels() -> None:
    assert [route_label(path) for path in KNOWN_ROUTES] == list(KNOWN_ROUTES)
    assert {route_label(path) for path in ("", "/x", "/generate/", "/GENERATE", "other")} == {"other"}
