"""Addresses: what may be asked for in one. A name that nobody reads is refused: an answer without the filter would pass for one with it."""

from typing import Final

from aiohttp import web

from collectors.otlp.http import Handler
from pipeline.apps.answers import as_json
from pipeline.apps.openapi import PATH
from pipeline.apps.operations import BAD, HTML, OPERATIONS
from pipeline.apps.page_routes import as_page
from pipeline.apps.text import one_line
from pipeline.config.mistake import nearest
from pipeline.errors import ConfigurationError

_SHOWN: Final = 80
"""Characters of what was asked for."""
_OTLP: Final = "/v1/"


@web.middleware
async def addressed(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse an address that nobody answers, and one with a parameter that is not in the table of operations.

    Senders of OTLP read the refusal as text (reliability O1); probes and the pages' style take any parameter.
    """
    refused = request.match_info.http_exception
    if refused is not None and request.path.startswith(_OTLP):
        return await handler(request)
    if refused is not None:
        response = _refusal(request, refused.status, _unanswered(request, refused))
        if "Allow" in refused.headers:
            response.headers["Allow"] = refused.headers["Allow"]
        return response
    sentence = _unread(request)
    return _refusal(request, BAD, sentence) if sentence else await handler(request)


def _refusal(request: web.Request, status: int, sentence: str) -> web.Response:
    return (as_json if _of_api(request) else as_page)(request, status, ConfigurationError(sentence))


def _of_api(request: web.Request) -> bool:
    return request.path == "/api" or request.path.startswith("/api/")


def _unanswered(request: web.Request, refused: web.HTTPException) -> str:
    path = one_line(request.path, _SHOWN)
    if refused.status == web.HTTPMethodNotAllowed.status_code:
        return f"{path} is not answered to {request.method}, but to {refused.headers['Allow']}"
    if _of_api(request):
        return f"there is no {path}; {PATH} lists all that is answered"
    return f"there is no page {path}{nearest(path, [known for (_, known), one in OPERATIONS.items() if HTML in one.media])}"


def _unread(request: web.Request) -> str:
    """Return what is wrong with the names in the query; nothing where each is known and written once."""
    resource = request.match_info.route.resource
    path = resource.canonical if resource is not None else ""
    operation = OPERATIONS.get(("GET" if request.method == "HEAD" else request.method, path))
    if operation is None or not operation.strict:
        return ""
    known = [part.name for part in operation.parameters if f"{{{part.name}}}" not in path]
    for name in request.query:
        shown = one_line(name, _SHOWN)
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            return f"{path} takes no parameter {shown!r}{nearest(shown, known) or ';'} {takes}"
        if len(request.query.getall(name)) > 1:
            return f"{shown} is written more than once; write it once"
    return ""
