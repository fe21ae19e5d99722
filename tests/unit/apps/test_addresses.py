"""What may be asked for in an address: everything that the table of operations lists, and nothing else."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from pipeline.apps.addresses import addressed
from pipeline.apps.operations import HTML, OPERATIONS

Client = TestClient[web.Request, web.Application]
STRICT = sorted(key for key, operation in OPERATIONS.items() if operation.strict)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """All routes behind the check; each answers whatever reaches it."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="answered")

    application = web.Application(middlewares=[addressed])
    for method, path in OPERATIONS:
        application.router.add_routes([web.get(path, answer) if method == "GET" else web.post(path, answer)])
    async with TestClient(TestServer(application)) as made:
        yield made


def address(path: str) -> str:
    return re.sub(r"\{\w+\}", "ab", path)


async def told(client: Client, method: str, path: str) -> tuple[int, str, str]:
    async with client.request(method, path) as answer:
        is_json = answer.content_type == "application/json"
        return answer.status, answer.content_type, (await answer.json())["error"] if is_json else await answer.text()


def test_every_route_that_shows_data_is_strict() -> None:
    """The others: what senders of OTLP and of feedback, probes and browsers ask."""
    free = {"/v1/traces", "/v1/logs", "/api/feedback", "/healthz", "/readyz", "/api/openapi.json", "/style.css"}
    assert {path for _, path in OPERATIONS} - {path for _, path in STRICT} == free


@pytest.mark.parametrize(("method", "path"), STRICT)
async def test_a_parameter_that_nobody_reads_is_refused_and_the_known_ones_are_named(
    client: Client, method: str, path: str
) -> None:
    known = [part.name for part in OPERATIONS[method, path].parameters if f"{{{part.name}}}" not in path]
    status, media, sentence = await told(client, method, f"{address(path)}?nosuchfield=1")
    assert status == 400
    assert media == ("application/json" if path.startswith("/api/") else HTML)
    assert "nosuchfield" in sentence
    assert all(name in sentence for name in known)
    query = "&".join(f"{name}=1" for name in known)
    assert await told(client, method, f"{address(path)}?{query}") == (200, "text/plain", "answered")
    if method == "GET":
        async with client.head(f"{address(path)}?nosuchfield=1") as answer:
            assert answer.status == 400
    for name in known:
        status, _, sentence = await told(client, method, f"{address(path)}?{name}=1&{name}=2")
        assert status == 400
        assert f"{name} is written more than once" in sentence.lower()


async def test_what_was_meant_is_named(client: Client) -> None:
    status, _, sentence = await told(client, "GET", "/api/windows?agnt=x")
    assert (status, sentence) == (
        400,
        "/api/windows takes no parameter 'agnt'; did you mean `agent`? it takes dimension, length, agent, limit",
    )


async def test_probes_and_senders_may_write_any_query(client: Client) -> None:
    for method, path in OPERATIONS.keys() - set(STRICT):
        assert (await told(client, method, f"{path}?at=1"))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("GET", "/api/runs", 404, "there is no /api/runs"),
        ("GET", "/api/nope", 404, "there is no /api/nope; /api/openapi.json lists all that is answered"),
        ("GET", "/api/quality/recompute/ab", 405, "/api/quality/recompute/ab is not answered to GET, but to POST"),
        ("GET", "/api/feedback", 405, "/api/feedback is not answered to GET, but to POST"),
        ("GET", "/nope", 404, "no page /nope"),
        ("GET", "/runs/", 404, "did you mean `/runs`?</p>"),
        ("POST", "/runs", 405, "not answered to POST"),
        ("GET", "/<script>", 404, "&lt;script&gt;"),
    ],
)
async def test_what_nobody_answers_is_refused_as_its_neighbours_are(
    client: Client, method: str, path: str, status: int, says: str
) -> None:
    got = await told(client, method, path)
    assert got[:2] == (status, "application/json" if path.startswith("/api") else HTML)
    assert says in got[2]


async def test_a_refused_method_names_those_that_are_answered(client: Client) -> None:
    async with client.post("/api/windows") as answer:
        assert answer.headers["Allow"] == "GET,HEAD"


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/traces", 405), ("POST", "/v1/nothing", 404)])
async def test_senders_of_otlp_read_text(client: Client, method: str, path: str, status: int) -> None:
    """Reliability O1."""
    answer: Any
    async with client.request(method, path) as answer:
        assert (answer.status, answer.content_type) == (status, "text/plain")
