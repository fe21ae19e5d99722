"""OpenAPI: the table of operations as the document that other programs read."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import msgspec
from aiohttp import web

from pipeline.apps.answers import json_answer
from pipeline.apps.operations import JSON, OPERATIONS, Operation, Parameter

PATH: Final = "/api/openapi.json"
_SCHEMAS: Final = "#/components/schemas/{name}"
_REASONS: Final = {
    400: "It cannot be done as it is asked for.",
    401: "Keys are configured, and this is none of them.",
    404: "There is no such thing.",
    413: "It is too large.",
    429: "Too much at once; come back after what Retry-After says.",
    503: "Not now; come back.",
}


def openapi_route() -> web.RouteDef:
    """Return the route of the document. It says nothing of anybody's data, so it asks for no key."""

    async def answer(_: web.Request) -> web.Response:
        return json_answer(document())

    return web.get(PATH, answer)


@cache
def document() -> dict[str, Any]:
    """Return the document, OpenAPI 3.1."""
    schemas, components = _schemas(OPERATIONS.values())
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), one in OPERATIONS.items():
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, one, schemas)
    made = {
        "openapi": "3.1.0",
        "info": {
            "title": "tracegrade",
            "version": version("tracegrade"),
            "description": "Everything of the project that the caller's key belongs to; without configured keys, of the one project there is.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key; none where none is configured."}
            },
        },
        "security": [{"key": []}, {}],
    }
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(made))
    return plain


def _schemas(operations: Iterable[Operation]) -> tuple[Mapping[Any, Any], dict[str, Any]]:
    told = [(each.answer, each.body, each.refusal, *(part.type for part in each.parameters)) for each in operations]
    types = [one for some in told for one in some if one is not None]
    made, components = msgspec.json.schema_components(types, ref_template=_SCHEMAS)
    return {_key(one): schema for one, schema in zip(types, made, strict=True)}, components


def _key(one: Any) -> str:
    return repr(one)


def _operation(method: str, path: str, one: Operation, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    answer = {} if one.answer is None else schemas[_key(one.answer)]
    refused = {} if one.refusal is None else {"content": {JSON: {"schema": schemas[_key(one.refusal)]}}}
    made: dict[str, Any] = {
        "operationId": "_".join(re.findall("[a-z0-9]+", f"{method} {path}".lower())),
        "summary": one.summary,
        "parameters": [_parameter(part, path, schemas) for part in one.parameters],
        "responses": {"200": {"description": "The answer.", "content": {media: {"schema": answer} for media in one.media}}}
        | {str(status): {"description": _REASONS[status], **refused} for status in one.refusals},
    }
    if one.body is not None:
        made["requestBody"] = {
            "required": True,
            "content": {media: {"schema": schemas[_key(one.body)] if media == JSON else {}} for media in one.media},
        }
    return made


def _parameter(part: Parameter, path: str, schemas: Mapping[Any, Any]) -> dict[str, Any]:
    in_path = f"{{{part.name}}}" in path
    return {
        "name": part.name,
        "in": "path" if in_path else "query",
        "required": in_path or part.required,
        "description": part.description,
        "schema": schemas[_key(part.type)],
    }
