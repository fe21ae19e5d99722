"""The local HTTP API and the status page: what the commands ask of a running ``up``, and what a browser shows."""

import re
from base64 import b64decode
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Final

import msgspec
from aiohttp import web
from jinja2 import Environment

from collectors.otlp.keys import Keys, UnauthenticatedError
from pipeline.apps.show import counted, utc
from pipeline.apps.text import one_line
from pipeline.errors import ConfigurationError, TemporaryError
from pipeline.model.window import GateStatus
from pipeline.runtime.telemetry import Telemetry
from sinks.clickhouse.run_detail import UnknownRunError
from sinks.clickhouse.store import Store

Handler = Callable[[web.Request], Awaitable[web.Response]]
LIMIT: Final = 100
LONGEST: Final = 400
TRIPS: Final = 20
MOST: Final = 10_000
_NUMBER: Final = re.compile("[1-9][0-9]{0,8}")
HEADERS: Final = {
    # Text from spans is only ever text: no script runs, nothing is fetched from elsewhere, no other page may frame this one.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def api_routes(store: Store, keys: Keys, telemetry: Telemetry) -> list[web.RouteDef]:
    """Return the routes of the API and the status page. Whose data is shown is decided by the caller's key, as for spans."""
    api = _Api(store, keys, telemetry)
    return [
        web.get("/", _guarded(api.status_page)),
        web.get("/api/scoreboard", _guarded(api.scoreboard)),
        web.get("/api/runs/{prefix}", _guarded(api.run)),
        web.get("/api/accounting", _guarded(api.accounting)),
        web.get("/api/golden", _guarded(api.golden)),
        web.get("/api/telemetry", _guarded(api.telemetry)),
    ]


class _Api:
    def __init__(self, store: Store, keys: Keys, telemetry: Telemetry) -> None:
        self._store = store
        self._keys = keys
        self._telemetry = telemetry
        environment = Environment(autoescape=True, finalize=_shown)
        self._page = environment.from_string(files("pipeline.apps").joinpath("status.html").read_text(encoding="utf-8"))

    def _project_of(self, request: web.Request) -> str:
        return self._keys.project(_bearer(request.headers.get("Authorization")))

    async def scoreboard(self, request: web.Request) -> web.Response:
        limit = _number(request, "limit", LIMIT)
        runs = await self._store.scoreboard(self._project_of(request), limit, request.query.get("agent", ""))
        return _json({"runs": runs, "accounting": await self._store.accounting(self._project_of(request))})

    async def run(self, request: web.Request) -> web.Response:
        return _json(await self._store.run_detail(self._project_of(request), request.match_info["prefix"]))

    async def accounting(self, request: web.Request) -> web.Response:
        return _json(await self._store.accounting(self._project_of(request)))

    async def golden(self, request: web.Request) -> web.Response:
        return _json(await self._store.golden_cases(self._project_of(request)))

    async def telemetry(self, request: web.Request) -> web.Response:
        self._project_of(request)
        return _json(self._telemetry.snapshot())

    async def status_page(self, request: web.Request) -> web.Response:
        project = self._project_of(request)
        states = [state for state in await self._store.gate_states() if state.project == project]
        text = self._page.render(
            project=project,
            runs=await self._store.scoreboard(project, LIMIT),
            utc=utc,
            counted=counted,
            everything="all" in request.query,
            accounting=await self._store.accounting(project),
            firing=[state for state in states if state.status is GateStatus.FIRING],
            quiet=[state for state in states if state.status is not GateStatus.FIRING],
            trips=[trip for trip in await self._store.trips() if trip.project == project][-TRIPS:],
        )
        return web.Response(text=text, content_type="text/html", headers=HEADERS)


def _shown(value: Any) -> Any:
    """Autoescaping makes text harmless to a browser; this makes it honest to its reader, and leaves room for the rest of the page."""
    return one_line(value, LONGEST) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not _NUMBER.fullmatch(text) or int(text) > MOST:
        raise ConfigurationError(f"{name} is {text!r}; write a whole number from 1 to {MOST}")
    return int(text)


def _bearer(authorization: str | None) -> str | None:
    """Read the key that a browser sends as a password; anything else is left as it is."""
    scheme, _, credentials = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return authorization
    try:
        return f"Bearer {b64decode(credentials).decode().partition(':')[2]}"
    except ValueError:
        return None


def _guarded(handler: Handler) -> Handler:
    """Answer what a person can fix as JSON with the sentence that says how."""

    async def guarded(request: web.Request) -> web.Response:
        try:
            return await handler(request)
        except UnauthenticatedError as error:
            refusal = _json({"error": str(error)}, status=401)
            refusal.headers["WWW-Authenticate"] = 'Basic realm="tracegrade: any name, and an API key as password"'
            return refusal
        except ConfigurationError as error:
            return _json({"error": str(error)}, status=404 if isinstance(error, UnknownRunError) else 400)
        except TemporaryError as error:
            return _json({"error": str(error)}, status=503)

    return guarded


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json", headers=HEADERS)
