"""The local HTTP API: what the commands ask of a running ``up``. The pages beside it are in ``page_routes.py``."""

from typing import Final

from aiohttp import web

from collectors.otlp.keys import Keys
from pipeline.apps.answers import guarded, json_answer, number, project_of
from pipeline.apps.conversation_commands import known
from pipeline.apps.explain_command import facts_of
from pipeline.apps.page_routes import page_routes
from pipeline.apps.verdict_routes import verdict_routes
from pipeline.runtime.telemetry import Telemetry
from pipeline.runtime.verifying import Verifier
from pipeline.scorers.prices import PriceTable
from sinks.clickhouse.store import Store

LIMIT: Final = 100
TURNS: Final = 1000


def api_routes(
    store: Store, keys: Keys, telemetry: Telemetry, verifier: Verifier, prices: PriceTable, choice: str = ""
) -> list[web.RouteDef]:
    """Return the routes of the API and the pages. Whose data is shown is decided by the caller's key, as for spans.

    ``choice`` is what every page says of scores that decide by the user's choice.
    """
    api = _Api(store, keys, telemetry, verifier)
    return [
        web.get("/api/scoreboard", guarded(api.scoreboard)),
        web.get("/api/runs/{prefix}", guarded(api.run)),
        web.get("/api/facts", guarded(api.facts)),
        web.get("/api/verify", guarded(api.verify)),
        web.get("/api/conversations", guarded(api.conversations)),
        web.get("/api/conversation", guarded(api.conversation)),
        web.get("/api/accounting", guarded(api.accounting)),
        web.get("/api/golden", guarded(api.golden)),
        web.get("/api/telemetry", guarded(api.telemetry)),
        web.get("/api/judge/cost", guarded(api.judge_cost)),
        *verdict_routes(store, keys),
        *page_routes(store, keys, prices, choice),
    ]


class _Api:
    def __init__(self, store: Store, keys: Keys, telemetry: Telemetry, verifier: Verifier) -> None:
        self._store = store
        self._keys = keys
        self._telemetry = telemetry
        self._verifier = verifier

    def _project_of(self, request: web.Request) -> str:
        return project_of(self._keys, request)

    async def scoreboard(self, request: web.Request) -> web.Response:
        project, limit = self._project_of(request), number(request, "limit", LIMIT)
        agent, flag = (request.query.get(name, "") for name in ("agent", "flag"))
        # In this order: no run is counted that is not shown yet.
        accounting = await self._store.accounting(project)
        return json_answer({"runs": await self._store.scoreboard(project, limit, agent, flag), "accounting": accounting})

    async def run(self, request: web.Request) -> web.Response:
        return json_answer(await self._store.run_detail(self._project_of(request), request.match_info["prefix"]))

    async def facts(self, request: web.Request) -> web.Response:
        return json_answer(await facts_of(self._store, self._project_of(request), request.query.get("run", "")))

    async def verify(self, request: web.Request) -> web.Response:
        project, run_id = self._project_of(request), request.query.get("run", "")
        if run_id:
            return json_answer([await self._verifier.one(project, run_id)])
        return json_answer(await self._verifier.latest(project, number(request, "limit", LIMIT)))

    async def conversations(self, request: web.Request) -> web.Response:
        limit, agent = number(request, "limit", LIMIT), request.query.get("agent", "")
        return json_answer(await self._store.conversations.latest(self._project_of(request), limit, agent))

    async def conversation(self, request: web.Request) -> web.Response:
        project, name = self._project_of(request), request.query.get("id", "")
        found = await self._store.conversations.one(project, name, number(request, "limit", TURNS))
        return json_answer(known(found, project, name))

    async def accounting(self, request: web.Request) -> web.Response:
        return json_answer(await self._store.accounting(self._project_of(request)))

    async def golden(self, request: web.Request) -> web.Response:
        return json_answer(await self._store.golden_cases(self._project_of(request)))

    async def judge_cost(self, request: web.Request) -> web.Response:
        return json_answer(await self._store.judge.costs(self._project_of(request), number(request, "limit", LIMIT)))

    async def telemetry(self, request: web.Request) -> web.Response:
        self._project_of(request)
        return json_answer(self._telemetry.snapshot())
