"""A webhook on loopback that keeps what it is told, once per idempotency key: the demo's on-call."""

from typing import Any, Self

from aiohttp import web


class Pager:
    """Listens while its context lasts. ``told`` is what arrived, by idempotency key; ``calls`` counts every delivery."""

    def __init__(self) -> None:
        self.told: dict[str, dict[str, Any]] = {}
        self.calls = 0
        self.url = ""
        application = web.Application()
        application.router.add_post("/alerts", self._take)
        self._runner = web.AppRunner(application, access_log=None)

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/alerts"
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        self.calls += 1
        self.told.setdefault(request.headers["Idempotency-Key"], await request.json())
        return web.Response(status=204)
