"""The pages for browsers: the status of a project, its runs, and one run with its steps. They only read."""

import asyncio
import re
from typing import Any, Final

import msgspec
from aiohttp import web

from collectors.dialects import plug_ins
from collectors.otlp.keys import Keys
from pipeline.apps.answers import HEADERS, guarded, number, project_of
from pipeline.apps.pages.render import STYLE, STYLE_PATH, page
from pipeline.apps.pages.run_page import run_page
from pipeline.apps.pages.run_view import whole_text
from pipeline.apps.pages.runs_query import CLASSES, OUTCOMES, asked, cursor_text
from pipeline.apps.text import as_json
from pipeline.apps.window_lines import length_of, lines_of
from pipeline.errors import ConfigurationError
from pipeline.model.version import StoredTrace
from pipeline.model.window import GateStatus
from pipeline.scorers.prices import PriceTable
from pipeline.stages.grade import NEEDS_A_PERSON
from pipeline.stages.outline import Entry, outline
from sinks.clickhouse.run_detail import AmbiguousRunError, RunDetail, UnknownRunError
from sinks.clickhouse.run_list import cursor_of
from sinks.clickhouse.store import Store

LATEST: Final = 20
"""Runs on the status page."""
PAGE: Final = 50
"""Runs on a page of the list."""
TRIPS: Final = 20
_VERSION: Final = re.compile("[0-9]{1,19}")
_KEPT: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
_TITLES: Final = {400: "That cannot be shown", 404: "Not found", 405: "Not answered", 503: "The store does not answer now"}


def page_routes(store: Store, keys: Keys, prices: PriceTable, choice: str) -> list[web.RouteDef]:
    """Return the routes of the pages. Whose runs are shown is decided by the caller's key, as for spans."""
    pages = _Pages(store, keys, prices, choice)
    return [
        web.get("/", guarded(pages.status, as_page)),
        web.get("/runs", guarded(pages.runs, as_page)),
        web.get("/runs/{run}", guarded(pages.run, as_page)),
        web.get("/runs/{run}/value", guarded(pages.value, as_page)),
        web.get(STYLE_PATH, _style),
    ]


class _Pages:
    def __init__(self, store: Store, keys: Keys, prices: PriceTable, choice: str) -> None:
        self._store = store
        self._keys = keys
        self._prices = prices
        self._choice = choice

    async def status(self, request: web.Request) -> web.Response:
        project = project_of(self._keys, request)
        states = [state for state in await self._store.gate_states() if state.project == project]
        return _html(
            "status.html",
            project=project,
            by_choice=self._choice,
            # In this order: no run is counted that is not shown yet.
            accounting=await self._store.accounting(project),
            runs=await self._store.scoreboard(project, LATEST),
            windows=lines_of(await self._store.windows.current(project, "verdict", length_of("5m"), LATEST)),
            everything="all" in request.query,
            firing=[state for state in states if state.status is GateStatus.FIRING],
            quiet=[state for state in states if state.status is not GateStatus.FIRING],
            trips=[trip for trip in await self._store.trips() if trip.project == project][-TRIPS:],
        )

    async def runs(self, request: web.Request) -> web.Response:
        project, wanted = project_of(self._keys, request), asked(request.query)
        # One more than is shown tells whether there is another page.
        counts = await self._store.run_list.counts(project, wanted.chosen)
        found = await self._store.run_list.page(project, wanted.chosen, PAGE + 1, wanted.before)
        return _html(
            "runs.html",
            project=project,
            by_choice=self._choice,
            given=wanted.given,
            outcomes=OUTCOMES,
            classes=CLASSES,
            choices=await self._store.run_list.choices(project),
            needs_a_person=NEEDS_A_PERSON,
            counts=counts,
            runs=found[:PAGE],
            later=wanted.before is not None,
            older=cursor_text(cursor_of(found[PAGE - 1])) if len(found) > PAGE else "",
        )

    async def run(self, request: web.Request) -> web.Response:
        project = project_of(self._keys, request)
        latest = await self._store.run_detail(project, request.match_info["run"])
        asked_for = request.query.get("version", "")
        detail = latest if not asked_for else await self._at(project, latest, asked_for)
        history = await self._store.run_histories.of(project, detail)
        trace = await self._store.run_histories.trace(project, latest)
        entries = await self._entries(latest, trace)
        reads = [one for one in trace.evidence if one.run_id == latest.line.run_id]
        steps_page, step = number(request, "steps", 1), request.query.get("step", "")
        # Off the loop: a run of ten thousand steps takes a while to look through.
        given = (project, latest, detail, history, entries, reads, self._prices, steps_page, step, self._choice)
        text = await asyncio.to_thread(run_page, *given)
        return web.Response(text=text, content_type="text/html", headers=HEADERS)

    async def _at(self, project: str, latest: RunDetail, text: str) -> RunDetail:
        if not _VERSION.fullmatch(text):
            raise ConfigurationError(f"version is {text!r}; write the number of one of the run's versions")
        return await self._store.run_histories.at(project, latest, int(text))

    async def _entries(self, detail: RunDetail, trace: StoredTrace) -> tuple[Entry, ...]:
        return await asyncio.to_thread(outline, trace, detail.line.run_id, plug_ins.installed().read)

    async def value(self, request: web.Request) -> web.Response:
        """Answer one text of a run as a file: whole, as it is stored, and never as something that a browser would show."""
        project = project_of(self._keys, request)
        detail = await self._store.run_detail(project, request.match_info["run"])
        of, span_id = request.query.get("of", ""), request.query.get("step", "")
        text = await self._text(project, detail, of, span_id)
        if text is None:
            raise UnknownRunError(f"run {detail.line.run_id} has no {of!r} to show")
        headers = {**HEADERS, "Content-Disposition": 'attachment; filename="value.txt"'}
        return web.Response(body=text.encode("utf-8", "replace"), content_type="text/plain", charset="utf-8", headers=headers)

    async def _text(self, project: str, detail: RunDetail, of: str, span_id: str) -> str | None:
        if not span_id:
            texts = {"request": detail.request, "answer": detail.answer, "error": detail.error, "transcript": detail.transcript}
            return texts.get(of) or None
        trace = await self._store.run_histories.trace(project, detail)
        if of == "span":
            return next((as_json(msgspec.to_builtins(span)) for span in trace.spans if span.span_id == span_id), None)
        entries = await self._entries(detail, trace)
        step = next((entry.step for entry in entries if entry.step.span_id == span_id), None)
        return None if step is None else whole_text(step, of)


async def _style(_request: web.Request) -> web.Response:
    headers = {**HEADERS, **_KEPT}
    return web.Response(text=STYLE, content_type="text/css", headers=headers)


def as_page(_request: web.Request, status: int, error: Exception) -> web.Response:
    """Return a refusal as a page, with the runs that may be meant."""
    candidates = error.candidates if isinstance(error, AmbiguousRunError) else ()
    return _html("message.html", status, title=_TITLES[status], sentence=str(error), candidates=candidates)


def _html(template: str, status: int = 200, **values: Any) -> web.Response:
    return web.Response(text=page(template, **values), status=status, content_type="text/html", headers=HEADERS)
