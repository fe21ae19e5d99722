"""The services that the two-runtimes scenario reads records from: one server on loopback, which says what the scenario writes by path."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web
from aiohttp.test_utils import TestServer

_READ: Final = re.compile(r"(?<=, )read \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ(?=: )")


class Services:
    """Answers a GET with JSON, or with a status alone where the scenario says a number. ``asked`` counts by path."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self.asked: Counter[str] = Counter()

    async def answer(self, request: web.Request) -> web.Response:
        """Say what there is; a path that the scenario does not know is a mistake in it."""
        self.asked[request.path] += 1
        said = self._answers[request.path]
        return web.Response(status=said) if isinstance(said, int) else web.json_response(said)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Listen, and say under which URL."""
        application = web.Application()
        application.router.add_get("/{path:.+}", self.answer)
        async with TestServer(application) as server:
            yield f"http://127.0.0.1:{server.port}"


def without_times(evidence: str) -> str:
    """Return evidence without when its records were read: each runtime read them by its own clock."""
    return _READ.sub("read", evidence)


def reached(sources: Mapping[str, Mapping[str, Any]], url: str) -> dict[str, Any]:
    """Return record sources as they are configured, each path of theirs on the services' URL."""
    networks = ["127.0.0.0/8"]
    return {
        name: {**source, "http": {**source["http"], "url": f"{url}{source['http']['url']}", "networks": networks}}
        for name, source in sources.items()
    }
