"""Health: whether a process is alive, and whether what it needs is there. Asked over HTTP and gRPC; senders are told to come back (O22).

Each process gives its own checks by name: the brokers, the store, the disk, the backlog. They are made again and again beside the work,
so that a request never waits for one.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, Self, TypeAlias

import msgspec
import structlog
from aiohttp import web

from pipeline.errors import ConfigurationError, PermanentError, TemporaryError

EVERY_S: Final = 1.0
"""Between two looks."""
PATIENCE_S: Final = 5.0
"""For one check."""
_GIBIBYTE: Final = 1024**3

Check: TypeAlias = Callable[[], Awaitable[str]]
"""Returns what there is to say, such as how much is free; raises TemporaryError where it is not well."""
Listener: TypeAlias = Callable[[bool], Awaitable[None]]

log = structlog.get_logger(__name__)


class Finding(msgspec.Struct, frozen=True):
    """What a check came to."""

    ok: bool
    detail: str = ""


def _nothing_failed() -> BaseException | None:
    """Take the place of a watch where nothing can fail by itself."""
    return None


class Health:
    """The health of one process: an async context manager that looks for as long as it lasts."""

    def __init__(
        self, checks: Mapping[str, Check], failed: Callable[[], BaseException | None] = _nothing_failed, every_s: float = EVERY_S
    ) -> None:
        """Take the checks by name; ``failed`` returns what ended a part of the process that must never end."""
        self._checks = checks
        self._failed = failed
        self._every_s = every_s
        self._listeners: list[Listener] = []
        self._task: asyncio.Task[None] | None = None
        self._told = True
        """Whether it was well when somebody was last told: who is told nothing takes it to be."""
        self.findings: dict[str, Finding] = {name: Finding(ok=False, detail="not looked at yet") for name in checks}

    @property
    def trouble(self) -> str:
        """Why nothing can be accepted now; empty where all is well."""
        return "; ".join(f"{name}: {found.detail}" for name, found in self.findings.items() if not found.ok)

    def tell(self, listener: Listener) -> None:
        """Call this whenever the process becomes ready or is no longer."""
        self._listeners.append(listener)

    async def __aenter__(self) -> Self:
        """Look once, then again and again."""
        await self.look()
        self._task = asyncio.create_task(self._look_for_ever())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def look(self) -> None:
        """Make every check, and tell who wants to know where that changes anything."""
        names = list(self._checks)
        found = await asyncio.gather(*(_finding(self._checks[name]) for name in names))
        self.findings = dict(zip(names, found, strict=True))
        ready = not self.trouble
        if ready != self._told:
            self._told = ready
            log.info("ready" if ready else "not_ready", why=self.trouble or None)
            for listener in self._listeners:
                await listener(ready)

    async def _look_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self.look()

    def routes(self) -> list[web.RouteDef]:
        """Return ``/healthz`` (the process is alive) and ``/readyz`` (it can work), as JSON that names each check."""
        return [web.get("/healthz", self._healthz), web.get("/readyz", self._readyz)]

    async def _healthz(self, _: web.Request) -> web.Response:
        if self._failed() is None:
            return web.Response(text="ok\n")
        return web.Response(status=web.HTTPServiceUnavailable.status_code, text="a part of this process failed\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        body = msgspec.json.encode({"ready": not self.trouble, "checks": self.findings})
        return web.Response(status=503 if self.trouble else 200, body=body, content_type="application/json")


async def _finding(check: Check) -> Finding:
    try:
        async with asyncio.timeout(PATIENCE_S):
            return Finding(ok=True, detail=await check())
    except TimeoutError:
        return Finding(ok=False, detail=f"no answer within {PATIENCE_S:.0f} s")
    except (TemporaryError, PermanentError, ConfigurationError) as error:
        return Finding(ok=False, detail=str(error))
    except Exception as error:  # noqa: BLE001 - whatever a client raises while what it talks to is away
        return Finding(ok=False, detail=type(error).__name__)


def disk(folder: Path, least: int) -> Check:
    """Return a check of the space on a folder's disk: at least so many bytes."""

    async def check() -> str:
        free = shutil.disk_usage(folder).free
        said = f"{free / _GIBIBYTE:.1f} GiB free"
        if free < least:
            raise TemporaryError(f"{said} on the disk of the data folder, and {least / _GIBIBYTE:.1f} GiB are kept")
        return said

    return check


def backlog(waiting: Callable[[], int], most: int, unit: str) -> Check:
    """Return a check of what is accepted and not yet worked off."""

    async def check() -> str:
        count = waiting()
        if count >= most:
            raise TemporaryError(f"{count} {unit} wait, and there is room for {most}")
        return f"{count} {unit} wait"

    return check
