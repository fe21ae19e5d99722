"""The front itself: HTTP as clickhouse-connect speaks it, and faults on demand."""

import asyncio
import base64
import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from uuid import uuid4

import cramjam
from aiohttp import web
from clickhouse_front_engine import Answer, Engine, EngineError, Request
from multidict import MultiDict

THREADS: Final = 4
_LARGEST_BODY: Final = 1 << 30
_LARGEST_FIELD: Final = 128 * 1024 + 1
"""``http_max_field_value_size`` of a server with its defaults, which no client can raise: longer form fields are refused."""
_NOT_SETTINGS: Final = frozenset(
    {
        "query",
        "database",
        "query_id",
        "session_id",
        "wait_end_of_query",
        "client_protocol_version",
        "send_progress_in_http_headers",
        "http_headers_progress_interval_ms",
        "enable_http_compression",
    }
)
_DECOMPRESS: Final = {"lz4": cramjam.lz4.decompress, "zstd": cramjam.zstd.decompress, "gzip": cramjam.gzip.decompress}
_STATUS: Final = {**dict.fromkeys((46, 47, 60, 81), 404), **dict.fromkeys((36, 62, 115), 400), 164: 403, 497: 403, 516: 403}


class Faults:
    """What goes wrong now, and what was counted. Set whole or in part by ``POST /_faults``."""

    def __init__(self) -> None:
        self._down_until = 0.0
        self.apply_then_500 = 0
        """So many of the next inserts are applied and answered 500, without a code of ClickHouse."""
        self.apply_then_close = 0
        """So many of the next inserts are applied, and the connection is closed instead of an answer."""
        self.cut = 0
        """So many of the next answers with a body end in its middle."""
        self.fail_500 = 0
        """So many of the next requests are answered 500 without a code, and not run."""
        self.delay_ms = 0
        """Every request waits so long before it is run."""
        self.lie_share = 0.0
        """This share of all inserts is applied, and answered 500 or by closing the connection, by turns."""
        self._chance = random.Random(20261129)
        self.counted: Counter[str] = Counter()
        self.tokens: set[str] = set()

    def set(self, wanted: Mapping[str, Any]) -> None:
        """Take ``{"down_s": 60}`` and the like."""
        for name, value in wanted.items():
            if name == "down_s":
                self._down_until = time.monotonic() + value
            elif name in {"apply_then_500", "apply_then_close", "cut", "fail_500", "delay_ms", "lie_share"}:
                setattr(self, name, value)
            else:
                raise web.HTTPBadRequest(text=f"there is no fault {name}\n")

    @property
    def down(self) -> bool:
        return time.monotonic() < self._down_until

    def take(self, name: str) -> bool:
        """Use up one of a counted fault."""
        left: int = getattr(self, name)
        if left > 0:
            setattr(self, name, left - 1)
            self.counted[name] += 1
        return left > 0

    def draw(self) -> None:
        """Have the next insert lie with the chance that is set."""
        if self._chance.random() < self.lie_share:
            name = "apply_then_close" if self.counted["apply_then_500"] > self.counted["apply_then_close"] else "apply_then_500"
            setattr(self, name, getattr(self, name) + 1)

    def inserted(self, rows: int, token: str | None) -> None:
        """Count an insert that was applied."""
        self.counted["inserts"] += 1
        self.counted["rows"] += rows
        if token is not None:
            self.counted["inserts_with_a_token_seen_before"] += token in self.tokens
            self.tokens.add(token)


class Server:
    """Answers HTTP. ``login`` is the only user and password that are let in; None lets everybody in."""

    def __init__(self, engine: Engine, login: tuple[str, str] | None) -> None:
        self._engine, self._login = engine, login
        self._faults = Faults()
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="engine")

    def application(self) -> web.Application:
        """Return what a runner serves."""
        made = web.Application(client_max_size=_LARGEST_BODY)
        made.add_routes(
            [
                web.get("/_faults", self._tell),
                web.post("/_faults", self._set),
                web.get("/ping", self._ping),
                web.post("/_look", self._look),
                web.route("*", "/", self._statement),
            ]
        )
        return made

    async def _tell(self, _: web.Request) -> web.Response:
        return web.json_response(dict(self._faults.counted))

    async def _set(self, request: web.Request) -> web.Response:
        self._faults.set(await request.json())
        return web.json_response(dict(self._faults.counted))

    async def _look(self, request: web.Request) -> web.Response:
        """Run a statement whatever goes wrong for others, and give its rows as text."""
        asked = Request(await request.read(), "default", {}, {})
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._pool, self._engine.run, asked)
        except EngineError as error:
            return web.Response(status=500, text=f"{error}\n")
        return web.Response(body=answer.body)

    async def _ping(self, _: web.Request) -> web.Response:
        return web.Response(status=503) if self._faults.down else web.Response(text="Ok.\n")

    async def _statement(self, request: web.Request) -> web.StreamResponse:
        faults = self._faults
        faults.counted["requests"] += 1
        if faults.down:
            faults.counted["refused"] += 1
            return web.Response(status=503, text="Service Unavailable\n")
        if faults.take("fail_500"):
            return web.Response(status=500, text="Internal Server Error\n")
        await asyncio.sleep(faults.delay_ms / 1000)
        try:
            return await self._run(request)
        except EngineError as error:
            faults.counted["errors"] += 1
            headers = {"X-ClickHouse-Exception-Code": str(error.code)}
            return web.Response(status=_STATUS.get(error.code, 500), text=f"{error}\n", headers=headers)
        except ConnectionResetError:
            faults.counted["clients_gone"] += 1
            return web.Response(status=499)

    async def _run(self, request: web.Request) -> web.StreamResponse:
        faults = self._faults
        self._let_in(request)
        asked = await _asked(request)
        if not asked.statement.strip():
            return web.Response(text="Ok.\n")
        answer = await asyncio.get_running_loop().run_in_executor(self._pool, self._engine.run, asked)
        if answer.rows_inserted is not None:
            faults.inserted(answer.rows_inserted, asked.settings.get("insert_deduplication_token"))
            faults.draw()
            if faults.take("apply_then_500"):
                return web.Response(status=500, text="Internal Server Error\n")
            if faults.take("apply_then_close") and request.transport is not None:
                request.transport.abort()
        response = self._response(request, answer)
        return await _half(request, response) if answer.body and faults.take("cut") else response

    def _response(self, request: web.Request, answer: Answer) -> web.Response:
        headers = {
            "X-ClickHouse-Query-Id": request.query.get("query_id") or str(uuid4()),
            "X-ClickHouse-Summary": json.dumps(answer.summary),
            "X-ClickHouse-Timezone": self._engine.time_zone,
            "X-ClickHouse-Server-Display-Name": "front",
            "Content-Type": "text/plain; charset=UTF-8",
        }
        if answer.format is not None:
            headers["X-ClickHouse-Format"] = answer.format
        body = answer.body
        wanted = request.headers.get("Accept-Encoding", "")
        if body and "lz4" in wanted and request.query.get("enable_http_compression") == "1":
            headers["Content-Encoding"] = "lz4"
            body = bytes(cramjam.lz4.compress(body))
        return web.Response(body=body, headers=headers)

    def _let_in(self, request: web.Request) -> None:
        if self._login is None:
            return
        user, password = self._login
        expected = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        if request.headers.get("Authorization") != expected:
            text = "Authentication failed: password is incorrect, or there is no user with such name. (AUTHENTICATION_FAILED)"
            raise EngineError(516, f"Code: 516. DB::Exception: {text} (version {self._engine.version})")


async def _half(request: web.Request, whole: web.Response) -> web.StreamResponse:
    body = whole.body
    assert isinstance(body, bytes)
    response = web.StreamResponse(headers={**whole.headers, "Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.abort()
    return response


async def _asked(request: web.Request) -> Request:
    """Read the statement, its parameters and settings from the address, the form and the body."""
    fields = MultiDict(request.query)
    form = request.content_type in {"multipart/form-data", "application/x-www-form-urlencoded"}
    if form:
        for name, value in (await request.post()).items():
            text = value.file.read().decode() if isinstance(value, web.FileField) else str(value)
            if len(text.encode()) > _LARGEST_FIELD:
                raise EngineError(1000, "Code: 1000. DB::Exception: HTML Form Exception: Field value too long. (POCO_EXCEPTION)")
            fields[name] = text
    body = b"" if form else _plain(await request.read(), request.headers.get("Content-Encoding", ""))
    query = fields.get("query", "").encode()
    return Request(
        statement=query + b"\n" + body if query else body,
        database=fields.get("database") or request.headers.get("X-ClickHouse-Database") or "default",
        parameters={name.removeprefix("param_"): value for name, value in fields.items() if name.startswith("param_")},
        settings={name: value for name, value in fields.items() if name not in _NOT_SETTINGS and not name.startswith("param_")},
    )


def _plain(body: bytes, encoding: str) -> bytes:
    if not body or encoding in {"", "identity"}:
        return body
    if encoding not in _DECOMPRESS:
        raise EngineError(678, f"Code: 678. DB::Exception: Unknown compression method {encoding}. (UNKNOWN_COMPRESSION_METHOD)")
    try:
        return bytes(_DECOMPRESS[encoding](body))
    except cramjam.DecompressionError as error:
        raise EngineError(271, f"Code: 271. DB::Exception: Cannot decompress: {error}. (CANNOT_DECOMPRESS)") from error
