"""The OpenAPI document of Mastodon's API as this site serves it, made of the table in operations.py."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from http import HTTPStatus
from typing import Any

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver
from django.utils.translation import override
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from clientapi import scopes
from clientapi.errors import FORM_TYPE, ClientView
from clientapi.operations import ID, TABLE, TEXT_ANSWER, Operation, Schema
from runtime import version
from web.rest import FILES_TYPE
from web.strict_json import JSON_TYPE

REFERENCE = "#/components/schemas/{name}"
PARAMETER = re.compile(r"<str:(\w+)>")
METHODS = ("get", "post", "put", "patch", "delete")
WAITS = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
RATE = {
    "X-RateLimit-Limit": {"description": "Calls that the rate allows.", "schema": {"type": "string"}},
    "X-RateLimit-Remaining": {"description": "Calls that are left.", "schema": {"type": "string"}},
    "X-RateLimit-Reset": {
        "description": "When counting begins anew.",
        "schema": {"type": "string", "format": "date-time"},
    },
}
LINK = {"Link": {"description": "The pages beside this one, `next` first.", "schema": {"type": "string"}}}
WORDS = {
    400: "The request cannot be read, or a number or id in it is none.",
    401: "No token, or one that is none (any more).",
    403: "The token's scopes do not open this address, or it is another's to change.",
    404: "Not there, or not for the caller to see.",
    405: "Wrong method.",
    413: "Too many bytes.",
    415: "No form and no JSON, or a file of a kind that is not taken.",
    422: "Understood, and not possible; also a token in no user's name where one is needed.",
    429: "Too many calls.",
    503: "An outage.",
}
STREAMS = "Streams (`/api/v1/streaming`) are event streams and sockets, and not described here."
WAITED = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


class Error(msgspec.Struct):
    """The fault, in words."""

    error: str


def views() -> Iterator[tuple[str, type[ClientView]]]:
    """The addresses of the API, without the slash before them, each with its view."""
    from clientapi import other_urls, urls

    def walk(patterns: list[Any], prefix: str) -> Iterator[tuple[str, type[ClientView]]]:
        for each in patterns:
            route = prefix + str(each.pattern)
            if isinstance(each, URLResolver):
                yield from walk(each.url_patterns, route)
            elif isinstance(each, URLPattern) and hasattr(each.callback, "cls"):
                yield route, each.callback.cls

    yield from walk([*urls.urlpatterns, *other_urls.urlpatterns], "")


def operations() -> Iterator[tuple[str, str, type[ClientView], Operation]]:
    """Every operation of the table: its address, method, view, and what the table says of it."""
    for route, view in views():
        for method in METHODS:
            operation = TABLE.get(f"{method} {route.removeprefix('api/')}")
            if operation is not None and hasattr(view, method):
                yield route, method, view, operation


@cache
def document() -> bytes:
    """The document, made once a process: it is the same for all callers."""
    found = list(operations())
    types = [operation.answer for _route, _method, _view, operation in found if operation.answer != TEXT_ANSWER]
    shapes, components = msgspec.json.schema_components([*types, Error], ref_template=REFERENCE)
    answers = iter(shapes)
    paths: dict[str, dict[str, Any]] = {}
    with override("en"):
        for route, method, view, operation in found:
            answer = None if operation.answer == TEXT_ANSWER else next(answers)
            path = "/" + PARAMETER.sub(r"{\1}", route)
            paths.setdefault(path, {})[method] = _described(route, method, view, operation, answer)
        return msgspec.json.encode(
            {
                "openapi": "3.1.0",
                "info": {
                    "title": "Mastodon's client API",
                    "version": version.VERSION,
                    "description": STREAMS,
                },
                "servers": [{"url": settings.SITE_URL}],
                "paths": paths,
                "components": {"schemas": components, "securitySchemes": {"oauth2": _scheme()}},
            }
        )


def _scheme() -> Schema:
    place, words = settings.SITE_URL, {scope: str(text) for scope, text in scopes.WORDS.items()}
    token = {"tokenUrl": f"{place}/oauth/token", "scopes": words}
    code = {"authorizationUrl": f"{place}/oauth/authorize", **token}
    return {"type": "oauth2", "flows": {"authorizationCode": code, "clientCredentials": token}}


def _described(
    route: str, method: str, view: type[ClientView], operation: Operation, answer: Schema | None
) -> dict[str, Any]:
    named = [
        {"name": name, "in": "path", "required": True, "schema": ID if name.endswith("_id") else {"type": "string"}}
        for name in PARAMETER.findall(route)
    ]
    asked = [_parameter(name, schema) for name, schema in operation.query.items()]
    described: dict[str, Any] = {
        "operationId": "_".join([method, *re.findall("[a-z0-9]+", route), *["slash"] * route.endswith("/")]),
        "summary": (getattr(view, method).__doc__ or "").strip().partition("\n")[0],
        "tags": [route.removeprefix("api/").split("/")[1]],
        "parameters": [*named, *asked],
        "responses": dict(_responses(route, view, operation, answer)),
        "security": _security(route, method, view),
    }
    if operation.body is not None:
        described["requestBody"] = _body(method, view, operation.body, operation.required)
    return described


def _parameter(name: str, schema: Schema) -> Schema:
    parameter = {"name": name, "in": "query", "schema": schema}
    return parameter | ({"allowEmptyValue": True} if schema.get("type") in ("integer", "string") else {})


def _body(method: str, view: type[ClientView], fields: Mapping[str, Schema], required: tuple[str, ...]) -> Schema:
    shape = {"type": "object", "properties": fields} | ({"required": required} if required else {})
    is_file = method.upper() in view.takes_files
    kinds = (FILES_TYPE,) if is_file else (JSON_TYPE, FORM_TYPE)
    return {"required": bool(required), "content": {kind: {"schema": shape} for kind in kinds}}


def _security(route: str, method: str, view: type[ClientView]) -> list[dict[str, list[str]]]:
    """The scopes that open an address; an empty one where callers without a token are answered too."""
    need = scopes.NEEDS.get(route, scopes.OPEN)
    scope = need.read if method == "get" else need.write
    token = {"oauth2": [scope] if scope else []}
    if not view.authentication_classes:
        return []
    is_open = view.is_open and (method == "get" or scope == scopes.ANY)
    return [{}, token] if is_open else [token]


def _responses(
    route: str, view: type[ClientView], operation: Operation, answer: Schema | None
) -> Iterator[tuple[str, Schema]]:
    kind = JSON_TYPE if answer is not None else "text/plain"
    yield (
        "200",
        {
            "description": "Done.",
            "headers": RATE | (LINK if operation.is_page else {}),
            "content": {kind: {"schema": answer if answer is not None else {"type": "string"}}},
        },
    )
    left_out = {404} if "<" not in route and not operation.may_miss else set()
    left_out |= {401, 403} if not view.authentication_classes and not operation.may_miss else set()
    left_out |= {415} if operation.body is None else set()
    for status in WORDS.keys() - left_out:
        headers = RATE | ({"Retry-After": WAITS} if status in WAITED else {})
        yield (
            str(status),
            {
                "description": WORDS[status],
                "headers": headers,
                "content": {JSON_TYPE: {"schema": {"$ref": REFERENCE.format(name="Error")}}},
            },
        )


@csrf_exempt
@require_safe
def schema(request: HttpRequest) -> HttpResponse:
    """The OpenAPI description of the API for apps."""
    return HttpResponse(document(), content_type="application/vnd.oai.openapi+json")
