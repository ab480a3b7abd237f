"""The documents of both listeners, put together from their tables of routes."""

from collections.abc import Collection, Iterable, Mapping
from http import HTTPStatus
from typing import Final

import orjson

from llmshed.admission.reasons import Reason
from llmshed.engines.base import Dialect
from llmshed.gateway.openapi import answers
from llmshed.gateway.openapi.operations import ADMIN_OPERATIONS, AT_THE_DOOR, DATA_OPERATIONS, Operation
from llmshed.gateway.openapi.refusals import (
    Form,
    Schema,
    form_of,
    refusal_headers,
    refusal_responses,
    refusal_schemas,
    told,
)
from llmshed.gateway.openapi.wishes import wish_parameters

OPENAPI: Final = "3.1.0"
API_VERSION: Final = "1"
"""Of what is described; `/v1/llmshed/limits` tells that of the program."""
_DATA: Final = (
    "What clients ask of llmshed, an admission controller in front of LLM servers. Sizes that are accepted depend on"
    " the configuration: `/v1/llmshed/limits` tells them. A path that is not listed is answered with 404, a method that"
    " is not listed with 405, and without a key, where keys exist, both are 401."
)
_ADMIN: Final = "What the operator of a gateway asks of it."


def data_document(routes: Mapping[str, Iterable[str]], open_paths: Iterable[str]) -> Schema:
    """Return the document of the data listener.

    Args:
        routes: the methods that each path takes.
        open_paths: those that need no key.

    Raises:
        KeyError: a path takes a method that is described nowhere.
    """
    items = {
        path: {method.lower(): _data_operation(method, path, open_to_all=path in open_paths) for method in methods}
        for path, methods in routes.items()
    }
    forms = (Form.NATIVE, Form.OPENAI, Form.BARE)
    return _document("llmshed", _DATA, items, forms, {"parameters": wish_parameters()})


def admin_document(routes: Iterable[tuple[str, str]], open_paths: Iterable[str]) -> Schema:
    """Return the document of the admin listener.

    Args:
        routes: method and path of each route, request ids as `{request_id}`.
        open_paths: those that need no token.

    Raises:
        KeyError: one of them is described nowhere.
    """
    items: dict[str, Schema] = {}
    for method, path in routes:
        operation, open_to_all = ADMIN_OPERATIONS[method, path], path in open_paths
        item = items.setdefault(path, {})
        item[method.lower()] = _operation(operation, Form.ADMIN, open_to_all=open_to_all)
        if method == "GET":
            item["head"] = _bare(operation, open_to_all=open_to_all)
    return _document("llmshed: administration", _ADMIN, items, (Form.ADMIN, Form.BARE), {})


def written(document: Schema) -> bytes:
    """Return a document as it is served and as `docs/` holds it."""
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _document(title: str, description: str, paths: Schema, forms: Collection[Form], components: Schema) -> Schema:
    responses = {name: response for form in forms for name, response in refusal_responses(form).items()}
    return {
        "openapi": OPENAPI,
        "info": {"title": title, "version": API_VERSION, "description": description},
        "security": [{"bearer": []}, {"header": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
            **components,
            "schemas": refusal_schemas(forms),
            "headers": refusal_headers(),
            "responses": responses,
        },
    }


def _data_operation(method: str, path: str, *, open_to_all: bool) -> Schema:
    if method == "OPTIONS":
        options = Operation("Tell the methods of this path.", {HTTPStatus.NO_CONTENT: answers.ALLOWED}, AT_THE_DOOR)
        return _operation(options, _form(path), open_to_all=open_to_all)
    if method == "HEAD":
        return _bare(DATA_OPERATIONS["GET", path], open_to_all=open_to_all)
    operation = DATA_OPERATIONS[method, path]
    described = _operation(operation, _form(path), open_to_all=open_to_all)
    if operation.asks_engine:
        described["parameters"] = [{"$ref": f"#/components/parameters/{name}"} for name in wish_parameters()]
    return described


def _form(path: str) -> Form:
    return form_of(Dialect.OPENAI if path.startswith("/v1/") else Dialect.NATIVE)


def _bare(operation: Operation, *, open_to_all: bool) -> Schema:
    """Return what HEAD answers: the statuses of GET, and no body."""
    silent = {status: {"description": answer["description"]} for status, answer in operation.answers.items()}
    head = Operation(f"As GET. {operation.summary}", silent, operation.reasons, parameters=operation.parameters)
    return _operation(head, Form.BARE, open_to_all=open_to_all)


def _operation(operation: Operation, form: Form, *, open_to_all: bool) -> Schema:
    """Describe an operation; where a status is both an answer and a refusal, the answer's own words tell of both."""
    reasons = operation.reasons - {Reason.UNAUTHENTICATED, Reason.FORBIDDEN} if open_to_all else operation.reasons
    own = {str(int(status)): answer for status, answer in operation.answers.items()}
    described: Schema = {
        "summary": operation.summary,
        "responses": told(form, reasons, asks_engine=operation.asks_engine) | own,
        "x-llmshed-reasons": [reason for reason in Reason if reason in reasons],
    }
    if open_to_all:
        described["security"] = []
    if operation.parameters:
        described["parameters"] = list(operation.parameters)
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": operation.body}}}
    return described
