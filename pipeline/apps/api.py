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
from pipeline.apps.conversation_commands import UnknownConversationError, known
from pipeline.apps.explain_command import facts_of
from pipeline.apps.show import counted, utc
from pipeline.apps.text import one_line
from pipeline.errors import ConfigurationError, TemporaryError
from pipeline.model.window import GateStatus
from pipeline.runtime.telemetry import Telemetry
from pipeline.runtime.verifying import Verifier
from sinks.clickhouse.run_detail import UnknownRunError
from sinks.clickhouse.store import Store

Handler = Callable[[web.Request], Awaitable[web.Response]]
LIMIT: Final = 100
TURNS: Final = 1000
LONGEST: Final = 400
TRIPS: Final = 20
MOST: Final = 10_000
_NUMBER: Final = re.compile("[1-9][0-9]{0,8}")
UNKNOWN: Final = (UnknownRunError, UnknownConversationError)
HEADERS: Final = {
    # Text from spans is only ever text: no script runs, nothing is fetched from elsewhere, no other page may frame this one.
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def api_routes(store: Store, keys: Keys, telemetry: Telemetry, verifier: Verifier) -> list[web.RouteDef]:
    """Return the routes of the API and the status page. Whose data is shown is decided by the caller's key, as for spans."""
    api = _Api(store, keys, telemetry, verifier)
    return [
        web.get("/", _guarded(api.status_page)),
        web.get("/api/scoreboard", _guarded(api.scoreboard)),
        web.get("/api/runs/{prefix}", _guarded(api.run)),
        web.get("/api/facts", _guarded(api.facts)),
        web.get("/api/verify", _guarded(api.verify)),
        web.get("/api/conversations", _guarded(api.conversations)),
        web.get("/api/conversation", _guarded(api.conversation)),
        web.get("/api/accounting", _guarded(api.accounting)),
        web.get("/api/golden", _guarded(api.golden)),
        web.get("/api/telemetry", _guarded(api.telemetry)),
    ]


class _Api:
    def __init__(self, store: Store, keys: Keys, telemetry: Telemetry, verifier: Verifier) -> None:
        self._store = store
        self._keys = keys
        self._telemetry = telemetry
        self._verifier = verifier
        environment = Environment(autoescape=True, finalize=_shown)
        self._page = environment.from_string(files("pipeline.apps").joinpath("status.html").read_text(encoding="utf-8"))

    def _project_of(self, request: web.Request) -> str:
        return self._keys.project(_bearer(request.headers.get("Authorization")))

    async def scoreboard(self, request: web.Request) -> web.Response:
        project, limit = self._project_of(request), _number(request, "limit", LIMIT)
        # In this order: no run is counted that is not shown yet.
        accounting = await self._store.accounting(project)
        return _json(
            {"runs": await self._store.scoreboard(project, limit, request.query.get("agent", "")), "accounting": accounting}
        )

    async def run(self, request: web.Request) -> web.Response:
        return _json(await self._store.run_detail(self._project_of(request), request.match_info["prefix"]))

    async def facts(self, request: web.Request) -> web.Response:
        return _json(await facts_of(self._store, self._project_of(request), request.query.get("run", "")))

    async def verify(self, request: web.Request) -> web.Response:
        project, run_id = self._project_of(request), request.query.get("run", "")
        if run_id:
            return _json([await self._verifier.one(project, run_id)])
        return _json(await self._verifier.latest(project, _number(request, "limit", LIMIT)))

    async def conversations(self, request: web.Request) -> web.Response:
        limit, agent = _number(request, "limit", LIMIT), request.query.get("agent", "")
        return _json(await self._store.conversations.latest(self._project_of(request), limit, agent))

    async def conversation(self, request: web.Request) -> web.Response:
        project, name = self._project_of(request), request.query.get("id", "")
        found = await self._store.conversations.one(project, name, _number(request, "limit", TURNS))
        return _json(known(found, project, name))

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
        accounting = await self._store.accounting(project)
        text = self._page.render(
            project=project,
            runs=await self._store.scoreboard(project, LIMIT),
            utc=utc,
            counted=counted,
            everything="all" in request.query,
            accounting=accounting,
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
            return _json({"error": str(error)}, status=404 if isinstance(error, UNKNOWN) else 400)
        except TemporaryError as error:
            return _json({"error": str(error)}, status=503)

    return guarded


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json", headers=HEADERS)
