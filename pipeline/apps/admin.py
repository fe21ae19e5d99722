"""Admin: the door of a running ``up`` for whoever can read its data folder. On loopback, with a secret that lies in the folder."""

import hmac
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import msgspec
from aiohttp import web

from pipeline.apps.letters import Letters
from pipeline.apps.serve import listen
from pipeline.apps.served import Admin
from pipeline.errors import TemporaryError


class _Wanted(msgspec.Struct):
    """The letters that somebody asks for."""

    ids: list[str]


async def admit(letters: Letters, stack: AsyncExitStack) -> Admin:
    """Open the door until the stack is closed. Returns where it is and what opens it."""
    token = secrets.token_hex(32)

    def guarded(handler: Callable[[web.Request], Awaitable[Any]]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            said = request.headers.get("Authorization", "").encode()
            if not hmac.compare_digest(said, f"Bearer {token}".encode()):
                return _json({"error": "only who can read the data folder is let in"}, 401)
            try:
                return _json(await handler(request))
            except (msgspec.MsgspecError, ValueError) as error:
                return _json({"error": str(error)}, 400)
            except TemporaryError as error:
                return _json({"error": str(error)}, 503)

        return answer

    async def list_all(_: web.Request) -> Any:
        return await letters.summaries()

    async def show(request: web.Request) -> Any:
        return await letters.by_id((await _wanted(request)).ids)

    async def replay(request: web.Request) -> Any:
        return await letters.replay((await _wanted(request)).ids)

    routes = [
        web.get("/dead-letters", guarded(list_all)),
        web.post("/dead-letters/show", guarded(show)),
        web.post("/dead-letters/replay", guarded(replay)),
    ]
    return Admin(await listen(routes, "127.0.0.1", 0, "the administrator's port", stack), token)


async def _wanted(request: web.Request) -> _Wanted:
    return msgspec.json.decode(await request.read(), type=_Wanted)


def _json(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json")
