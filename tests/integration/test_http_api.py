"""The whole HTTP API against its own document: every route is in it, and what each answers is what it says."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import jsonschema
import pytest
from aiohttp import web
from openapi_spec_validator import validate
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from serving import an_agent_runs

from pipeline.apps import serve
from pipeline.apps.compose import Product
from pipeline.apps.openapi import document
from pipeline.apps.operations import JSON, OPERATIONS
from pipeline.config.tracegrade import TracegradeSettings
from sinks.clickhouse.store import Store

SETTINGS = {
    "receiver": {"http_port": 0, "grpc_port": 0},
    "assemble": {"quiet_period": "300ms"},
    "agents": {
        "default": {"rubric": None, "checks": {"policies": [{"name": "no_deletion", "forbid": {"tool": "delete_customer"}}]}}
    },
}
RUNS = 3


class Answered(NamedTuple):
    """What a route answered: its status, its media type and its JSON where it is JSON."""

    status: int
    media: str
    body: Any


def test_the_document_is_openapi() -> None:
    validate(document())
    ids = [one["operationId"] for methods in document()["paths"].values() for one in methods.values()]
    assert len(ids) == len(set(ids)) == len(OPERATIONS)


def named(routes: Iterable[web.RouteDef]) -> set[tuple[str, str]]:
    return {(route.method, route.path) for route in routes}


async def ask(session: aiohttp.ClientSession, method: str, path: str) -> Answered:
    async with session.request(method, path) as answer:
        is_json = answer.content_type == JSON
        return Answered(answer.status, answer.content_type, await answer.json() if is_json else await answer.text())


def schema_of(method: str, path: str, status: int) -> dict[str, Any]:
    """The schema of an answer, with all that it refers to."""
    told = document()["paths"][path][method.lower()]["responses"][str(status)]["content"][JSON]["schema"]
    return {**told, "components": document()["components"]}


async def an_evaluation(session: aiohttp.ClientSession) -> dict[str, Any]:
    """Wait until the runs are in a window that was evaluated."""
    async with asyncio.timeout(60):
        while True:
            for line in (await ask(session, "GET", "/api/quality")).body:
                if line["rate"]["decided"] == RUNS:
                    found: dict[str, Any] = line
                    return found
            await asyncio.sleep(0.1)


async def test_every_route_is_in_the_document_and_answers_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listened: list[list[web.RouteDef]] = []
    real = serve.listen

    async def listen(routes: Iterable[web.RouteDef], *args: Any, **more: Any) -> str:
        listened.append(list(routes))
        return await real(listened[-1], *args, **more)

    monkeypatch.setattr(serve, "listen", listen)
    settings = TracegradeSettings.model_validate({**SETTINGS, "store": {"path": tmp_path / "data"}})
    store = await asyncio.to_thread(Store.open, settings.store)
    try:
        async with Product(settings, store) as product, aiohttp.ClientSession(product.served.http_url) as session:
            assert named(listened[0]) == set(OPERATIONS)
            exporter = f"{product.served.http_url}/v1/traces"
            for _ in range(RUNS):
                await asyncio.to_thread(an_agent_runs, OTLPSpanExporter(endpoint=exporter), "shop")
            evaluation = await an_evaluation(session)
            run = (await ask(session, "GET", "/api/scoreboard")).body["runs"][0]["run_id"]
            await every_answer(session, evaluation["id"], run)
            await refusals(session)
    finally:
        await store.close()


async def every_answer(session: aiohttp.ClientSession, evaluation: str, run: str) -> None:
    """Ask every route that answers without a body, and hold the answer to its schema."""
    parts = {"{prefix}": run, "{run}": run, "{id}": evaluation}
    queries = {
        "/api/facts": f"?run={run}",
        "/api/compare": f"?a={run}&b={run}",
        "/api/conversation": "?id=none",
        "/runs/{run}/value": "?of=answer",
    }
    refused = {"/api/conversation": 404, "/api/compare": 400}  # the runs name none, and nobody judges them
    for (method, path), operation in OPERATIONS.items():
        if operation.body is not None:
            continue
        asked = path
        for part, value in parts.items():
            asked = asked.replace(part, value)
        answer = await ask(session, method, f"{asked}{queries.get(path, '')}")
        assert answer.status == refused.get(path, 200), (path, answer)
        assert answer.media in operation.media, (path, answer)
        if answer.media == JSON:
            jsonschema.validate(answer.body, schema_of(method, path, answer.status))
    again = (await ask(session, "POST", f"/api/quality/recompute/{evaluation[:20]}")).body
    assert (again["differences"], again["why_not"], again["score"]) == ([], "", again["again"])


async def refusals(session: aiohttp.ClientSession) -> None:
    """What is not there, or is not to be understood, is answered with a sentence."""
    for method, path, status in (
        ("GET", "/api/quality/ffff", 404),
        ("POST", "/api/quality/recompute/gate-run-1", 404),
        ("GET", "/api/quality?limit=none", 400),
        ("GET", "/api/windows?length=5", 400),
        ("GET", "/api/windows?length=7m", 400),
        ("GET", "/api/windows?dimension=nosuch", 400),
        ("GET", "/api/windows?agnt=x", 400),
        ("GET", "/api/runs", 404),
        ("POST", "/api/windows", 405),
    ):
        answer = await ask(session, method, path)
        assert answer.status == status, answer
        assert answer.body["error"]
    for path, status in (("/runs?nosuchfield=1", 400), ("/runs?before=garbage", 400), ("/nope", 404)):
        page = await ask(session, "GET", path)
        assert (page.status, page.media) == (status, "text/html")
        assert "<h1>" in page.body
    assert (await ask(session, "GET", "/api/windows?agent=nosuch")).body == [], "an agent need not have run yet"
    told = (await ask(session, "POST", "/api/quality/recompute/gate-run-1")).body["error"]
    assert "gate runs have none yet" in told
