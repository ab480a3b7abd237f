"""The route label."""

from llmshed.observability.routes import KNOWN_ROUTES, route_label


def test_only_routes_of_the_table_are_labels() -> None:
    assert [route_label(path) for path in KNOWN_ROUTES] == list(KNOWN_ROUTES)
    assert {route_label(path) for path in ("", "/x", "/generate/", "/GENERATE", "other")} == {"other"}
