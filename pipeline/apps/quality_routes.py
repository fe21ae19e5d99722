"""Routes of what runs add up to: windows with their rates, and the quality scores of windows."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from collectors.otlp.keys import Keys, UnauthenticatedError
from pipeline.apps.answers import guarded, json_answer, number, project_of
from pipeline.apps.published import Published
from pipeline.apps.window_lines import NOTHING_EARNED, length_of, lines_of
from pipeline.config.consistency import is_loopback
from pipeline.config.tracegrade import DEFAULT
from pipeline.judges.calibration import Calibration
from pipeline.model.quality import QualitySpec
from pipeline.runtime.evaluations import Evaluations
from sinks.clickhouse.store import Store

LIMIT: Final = 50


def quality_routes(
    store: Store,
    keys: Keys,
    policies: Mapping[str, QualitySpec],
    earned: Calibration = NOTHING_EARNED,
    published: Published = Published(),  # noqa: B008 - it is immutable
) -> list[web.RouteDef]:
    """Return the routes. Whose runs are shown is decided by the caller's key."""
    evaluations = Evaluations(store, policies, DEFAULT)

    async def windows(request: web.Request) -> web.Response:
        query = request.query
        found = await published.latest(
            store.windows,
            project_of(keys, request),
            query.get("dimension", "verdict"),
            length_of(query.get("length", "5m")),
            query.get("agent", ""),
            number(request, "limit", LIMIT),
        )
        return json_answer(lines_of(found, earned))

    async def latest(request: web.Request) -> web.Response:
        agent, limit = request.query.get("agent", ""), number(request, "limit", LIMIT)
        return json_answer(await evaluations.latest(project_of(keys, request), agent, limit))

    async def spec(request: web.Request) -> web.Response:
        project_of(keys, request)
        return json_answer(evaluations.policies)

    async def one(request: web.Request) -> web.Response:
        return json_answer(await evaluations.one(project_of(keys, request), request.match_info["id"]))

    async def again(request: web.Request) -> web.Response:
        if keys.open and not is_loopback(request.remote):
            raise UnauthenticatedError("without keys this is answered to its own machine only; configure receiver.keys")
        return json_answer(await evaluations.again(project_of(keys, request), request.match_info["id"]))

    return [
        web.get("/api/windows", guarded(windows)),
        web.get("/api/quality", guarded(latest)),
        web.get("/api/quality/spec", guarded(spec)),
        web.get("/api/quality/{id}", guarded(one)),
        web.post("/api/quality/recompute/{id}", guarded(again)),
    ]
