"""Routes of verdicts and comparisons."""

from aiohttp import web

from collectors.otlp.keys import Keys
from pipeline.apps.answers import guarded, json_answer, project_of
from pipeline.errors import ConfigurationError
from pipeline.runtime.verdicts import Verdicts
from sinks.clickhouse.store import Store


def verdict_routes(store: Store, keys: Keys) -> list[web.RouteDef]:
    """Return the routes. Whose runs are shown is decided by the caller's key."""
    verdicts = Verdicts(store)

    async def verdict(request: web.Request) -> web.Response:
        return json_answer(await verdicts.one(project_of(keys, request), request.match_info["prefix"]))

    async def compared(request: web.Request) -> web.Response:
        project, (first, second) = project_of(keys, request), (_named(request, name) for name in ("a", "b"))
        across = _flag(request, "across_contracts")
        return json_answer(await verdicts.compared(project, first, second, across_contracts=across))

    return [web.get("/api/runs/{prefix}/verdict", guarded(verdict)), web.get("/api/compare", guarded(compared))]


def _named(request: web.Request, name: str) -> str:
    prefix = request.query.get(name, "").strip()
    if not prefix:
        raise ConfigurationError(f"{name} names no run; write as much of the beginning of its id as is unique")
    return prefix


def _flag(request: web.Request, name: str) -> bool:
    text = request.query.get(name, "false")
    if text not in ("true", "false"):
        raise ConfigurationError(f"{name} is {text!r}; write true or false")
    return text == "true"
