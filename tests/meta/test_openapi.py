"""The OpenAPI documents say what the code does: each route, method, status, reason and header, and none beside."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from llmshed.admission.reasons import REASON_TABLE, Reason
from llmshed.engines.base import Route
from llmshed.engines.fields import Fate
from llmshed.engines.tgi.fields import ROUTE_FIELDS
from llmshed.gateway.admin import routes as admin_routes
from llmshed.gateway.contract.problem import ENGINE_STATUSES
from llmshed.gateway.door import routes as data_routes
from llmshed.gateway.openapi.operations import ADMIN_OPERATIONS, DATA_OPERATIONS
from llmshed.gateway.openapi.wishes import wish_parameters

Document = dict[str, Any]
ID = "/admin/decisions/{request_id}"


@pytest.fixture
def data() -> Document:
    document: Document = orjson.loads(data_routes.openapi())
    return document


@pytest.fixture
def admin() -> Document:
    document: Document = orjson.loads(admin_routes.openapi())
    return document


def operations(document: Document) -> Iterator[tuple[str, str, Document]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


@pytest.mark.parametrize(
    ("name", "served"), [("openapi.json", data_routes.openapi), ("openapi-admin.json", admin_routes.openapi)]
)
def test_the_files_of_the_documentation_are_what_is_served(name: str, served: Any, repository: Path) -> None:
    hint = f"write what the gateway answers to GET /openapi.json or /admin/openapi.json into docs/{name}"
    assert (repository / "docs" / name).read_bytes() == served(), hint


def test_every_route_and_method_of_the_data_listener_is_described_and_no_other(data: Document) -> None:
    described = {(method, path) for method, path, _ in operations(data)}
    assert described == {(method, path) for path, route in data_routes.DATA_ROUTES.items() for method in route.methods}
    assert set(DATA_OPERATIONS) == {item for item in described if item[0] not in {"HEAD", "OPTIONS"}}


def test_every_route_and_method_of_the_admin_listener_is_described_and_no_other(admin: Document) -> None:
    taken = {(method, path.replace(admin_routes.DECISION_PATH, ID)) for method, path in admin_routes.ADMIN_ROUTES}
    assert set(ADMIN_OPERATIONS) == taken
    described = {(method, path) for method, path, _ in operations(admin)}
    assert described == taken | {("HEAD", path) for method, path in taken if method == "GET"}


def test_only_open_paths_need_no_key(data: Document, admin: Document) -> None:
    for document, open_paths in ((data, data_routes.OPEN_PATHS), (admin, admin_routes.OPEN_PATHS)):
        assert document["security"]
        for _, path, operation in operations(document):
            assert (operation.get("security") == []) is (path in open_paths)
            assert ("unauthenticated" in operation["x-llmshed-reasons"]) is (path not in open_paths)


def test_every_reason_and_status_is_told_with_its_meaning(data: Document) -> None:
    assert data["components"]["schemas"]["NativeError"]["properties"]["reason"]["enum"] == list(Reason)
    for form in ("native", "openai", "bare"):
        responses = {
            int(name.removeprefix(f"{form}-")): response["description"]
            for name, response in data["components"]["responses"].items()
            if name.startswith(f"{form}-")
        }
        assert set(responses) == {row.status for row in REASON_TABLE.values()} | set(ENGINE_STATUSES)
        for reason, row in REASON_TABLE.items():
            assert f"`{reason}`: {row.meaning}." in responses[row.status]


def test_an_operation_tells_the_statuses_of_its_reasons_and_no_other(data: Document, admin: Document) -> None:
    told = set()
    for document, table in ((data, DATA_OPERATIONS), (admin, ADMIN_OPERATIONS)):
        for method, path, operation in operations(document):
            reasons = set(map(Reason, operation["x-llmshed-reasons"]))
            row = table.get(("GET" if method == "HEAD" else method, path))
            answers = {204} if row is None else set(row.answers)
            passed_on = set(ENGINE_STATUSES) if row is not None and row.asks_engine else set()
            statuses = {reason.row.status for reason in reasons} | answers | passed_on
            assert {int(status) for status in operation["responses"]} == statuses
            told |= reasons
    assert told == set(Reason) - {Reason.METHOD_NOT_ALLOWED}  # which is of no method that is described


def test_every_reference_leads_somewhere_and_no_schema_is_idle(data: Document, admin: Document) -> None:
    for document in (data, admin):
        referred = set(references(document))
        for reference in referred:
            part = document
            for name in reference.removeprefix("#/").split("/"):
                part = part[name]
        components = document["components"]
        kept = {f"#/components/{kind}/{name}" for kind in components for name in components[kind]}
        unused = {name for name in kept - referred if "/responses/" not in name and "/securitySchemes/" not in name}
        assert unused == set()


def references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


@pytest.mark.parametrize("route", list(Route))
def test_a_body_has_the_fields_that_its_route_takes(route: Route, data: Document) -> None:
    content = data["paths"][route.value]["post"]["requestBody"]["content"]
    schema: Mapping[str, Any] = content["application/json"]["schema"]
    taken = {name for name, row in ROUTE_FIELDS[route].items() if row.fate is not Fate.REFUSED}
    assert set(schema["properties"]) == taken
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) <= taken


def test_the_headers_of_wishes_are_those_of_the_contract(repository: Path) -> None:
    page = (repository / "docs" / "contract.md").read_text()
    section = page.partition("## What a client may send\n")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)
    assert ["authorization", *wish_parameters()] == named


def test_the_readme_lists_the_routes(repository: Path) -> None:
    page = (repository / "README.md").read_text()
    (data,) = re.findall(r"^\| data \| (.*) \|$", page, re.MULTILINE)
    (admin,) = re.findall(r"^\| admin \| (.*) \|$", page, re.MULTILINE)
    assert set(re.findall(r"(/[^`]*)`", data)) == set(data_routes.DATA_ROUTES)
    assert set(re.findall(r"(/[^`]*)`", admin)) == {path for _, path in admin_routes.ADMIN_ROUTES}
