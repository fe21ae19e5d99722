"""A ClickHouse server for tests: chDB's engine behind the HTTP that clickhouse-connect speaks, in a process of its own.

``python tests/clickhouse_front.py --path DIR --port 0`` prints its address as its first line. It has the engine and the SQL of a
server, not its concurrency, its replication or its asynchronous inserts.
"""

import argparse
import asyncio
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from aiohttp import web
from clickhouse_front_engine import Engine
from clickhouse_front_server import Server

HOST: Final = "127.0.0.1"
PATIENCE_S: Final = 60
# Below the ports that a system gives to outgoing connections, so that a front that was killed finds its own free again.
_PORTS: Final = range(20_000, 32_000)
PASSWORD_VARIABLE: Final = "CLICKHOUSE_FRONT_PASSWORD"


class Front:
    """A front in a process of its own, which ends with the process that started it.

    ``user`` and ``password`` are the only ones let in; without a user everybody is.
    """

    def __init__(self, path: Path, user: str = "", password: str = "") -> None:
        self._path, self._user, self._password = path, user, password
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The address, for ``store.url``; the same after a restart."""
        return f"http://{self._user + '@' if self._user else ''}{HOST}:{self._port}"

    @property
    def pid(self) -> int:
        """The process that serves now."""
        assert self._process is not None, "the front is not running"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it was started, and not ended through here."""
        return self._process is not None

    def start(self) -> None:
        """Serve the folder, on the port of the last time if there was one. Returns when it answers."""
        assert self._process is None, "the front is running"
        self._port = self._port or _free_port()
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--path", self._path, "--port", str(self._port), "--user", self._user, "--tied"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, PASSWORD_VARIABLE: self._password},
        )
        assert self._process.stdout is not None
        said = self._process.stdout.readline().strip()
        if said != f"http://{HOST}:{self._port}":
            self.kill()
            raise RuntimeError(f"the front does not start: {said!r}")

    def kill(self) -> None:
        """End it as a power cut would (SIGKILL); safe to call when it does not run."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in good order; safe to call when it does not run."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Serve the same folder on the same port again, whether it runs or not."""
        self.stop()
        self.start()

    def faults(self, **wanted: float) -> dict[str, int]:
        """Make things go wrong, such as ``down_s=60``, and return what was counted; see ``clickhouse_front_server.Faults``."""
        return self._admin("POST", wanted)

    @property
    def counted(self) -> dict[str, int]:
        """What was counted since the start of the process."""
        return self._admin("GET")

    def look(self, sql: str, within_s: float = PATIENCE_S) -> list[tuple[str, ...]]:
        """Run a statement that no fault touches, and return its rows as text.

        Raises:
            OSError: the front does not run, or does not answer in time.
        """
        said = self._say("POST", "/_look", sql, within_s).decode(errors="surrogateescape")
        return [tuple(line.split("\t")) for line in said.splitlines()]

    def _admin(self, method: str, wanted: dict[str, float] | None = None) -> dict[str, int]:
        said = self._say(method, "/_faults", None if wanted is None else json.dumps(wanted), PATIENCE_S)
        counted: dict[str, int] = json.loads(said)
        return counted

    def _say(self, method: str, path: str, body: str | None, within_s: float) -> bytes:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=within_s)
        try:
            connection.request(method, path, None if body is None else body.encode())
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        assert answer.status == http.HTTPStatus.OK, said
        return said

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        # A front that is stopped (SIGSTOP) does not hear SIGTERM.
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _free_port() -> int:
    for port in random.sample(_PORTS, 100):
        with socket.socket() as tried:
            try:
                tried.bind((HOST, port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port")


async def serve(path: Path, port: int, login: tuple[str, str] | None) -> None:
    """Serve a folder until SIGTERM or SIGINT."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    # Bodies are unpacked by the server, which knows more encodings.
    runner = web.AppRunner(Server(Engine(path), login).application(), auto_decompress=False, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, HOST, port).start()
    bound: Any = runner.addresses[0]
    print(f"http://{HOST}:{bound[1]}", flush=True)  # noqa: T201 - the first line is the address
    await ended.wait()
    await runner.cleanup()


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True, help="the folder of the engine")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--user", default="", help=f"the only user let in, with the password in {PASSWORD_VARIABLE}")
    parser.add_argument("--tied", action="store_true", help="end when stdin closes")
    arguments = parser.parse_args()
    if arguments.tied:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    login = (arguments.user, os.environ.get(PASSWORD_VARIABLE, "")) if arguments.user else None
    asyncio.run(serve(arguments.path, arguments.port, login))


if __name__ == "__main__":
    main()
