"""The engine behind the front: statements as a server takes them, over chDB handles, one for each thread that asks."""

import re
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import chdb
from chdb.state import connect

_INSERT: Final = re.compile(rb"\s*(INSERT\s+INTO\s+.+?)\s+FORMAT\s+(\w+)[ \t]*\r?\n", re.IGNORECASE | re.DOTALL)
_FORMAT: Final = re.compile(rb"\bFORMAT\s+(\w+)\s*;?\s*$", re.IGNORECASE)
_CODE: Final = re.compile(r"\bCode:\s*(\d+)")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READS: Final = (b"SELECT", b"WITH", b"SHOW", b"DESCRIBE", b"DESC", b"EXISTS", b"EXPLAIN")
_BAD_ARGUMENTS: Final = 36


class EngineError(Exception):
    """What the engine says is wrong, with ClickHouse's number for it."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Answer(NamedTuple):
    """A result: its bytes, their format where there is a result at all, and what the engine counted."""

    body: bytes
    format: str | None
    summary: dict[str, str]
    rows_inserted: int | None = None
    """None where the statement was no insert of data."""


class Request(NamedTuple):
    """A statement with everything that a server takes beside it. An insert's data follow its first line, as in a body over HTTP."""

    statement: bytes
    database: str
    parameters: dict[str, str]
    settings: dict[str, str]


class Engine:
    """A folder, opened by as many handles as threads ask."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self._path = str(path)
        self._local = threading.local()
        first = self._handle()
        self.version, self.time_zone = first.query("SELECT version(), timezone()").decode().strip().split("\t")

    def run(self, request: Request) -> Answer:
        """Run a statement on the handle of this thread.

        Raises:
            EngineError: with the code and the text of the engine.
        """
        return self._handle().run(request)

    def _handle(self) -> "_Handle":
        if not hasattr(self._local, "handle"):
            self._local.handle = _Handle(self._path)
        handle: _Handle = self._local.handle
        return handle


class _Handle:
    """A connection of one thread. ``USE`` and ``SET`` last on it, so both are brought to what each request says."""

    def __init__(self, path: str) -> None:
        self._connection = connect(path)
        self._settings: dict[str, str] = {}

    def run(self, request: Request) -> Answer:
        # Each time, for the database may have been dropped and made anew by another handle.
        self.query(f"USE `{request.database}`")
        insert = _INSERT.match(request.statement)
        if insert is not None:
            return self._insert(insert, request)
        self._set(request.settings)
        said = _FORMAT.search(request.statement)
        form = said[1].decode() if said else "TabSeparated"
        result = self._query(request.statement, form, request.parameters)
        reads = request.statement.lstrip(b" \t\r\n(").upper().startswith(_READS)
        summary = {"read_rows": str(result.rows_read()), "read_bytes": str(result.bytes_read()), "written_rows": "0"}
        return Answer(result.bytes() or b"", form if reads else None, summary)

    def _insert(self, insert: re.Match[bytes], request: Request) -> Answer:
        self._set({})
        target, form = insert[1].decode(), insert[2].decode()
        clause = ", ".join(f"{_named(name)} = {_quoted(value)}" for name, value in request.settings.items())
        with tempfile.NamedTemporaryFile(suffix=".insert") as file:
            file.write(memoryview(request.statement)[insert.end() :])
            file.flush()
            sql = f"{target} FROM INFILE {_quoted(file.name)}{' SETTINGS ' + clause if clause else ''} FORMAT {form}"
            result = self._query(sql.encode(), "TabSeparated", request.parameters)
        rows = result.rows_read()
        summary = {"read_rows": str(rows), "written_rows": str(rows), "written_bytes": str(result.bytes_read())}
        return Answer(b"", None, summary, rows)

    def _set(self, settings: Mapping[str, str]) -> None:
        """Undo what an earlier request set, and set what this one says."""
        for name in set(self._settings) - set(settings):
            self.query(f"SET {_named(name)} = DEFAULT")
            del self._settings[name]
        for name, value in settings.items():
            if self._settings.get(name) != value:
                self.query(f"SET {_named(name)} = {_quoted(value)}")
                self._settings[name] = value

    def query(self, sql: str) -> bytes:
        """Run a statement of our own."""
        return self._query(sql.encode(), "TabSeparated", {}).bytes() or b""

    def _query(self, sql: bytes, form: str, parameters: Mapping[str, str]) -> Any:
        try:
            # Its annotations know only text; names and values may hold bytes that are none.
            return self._connection.query(sql, form, params=dict(parameters))  # type: ignore[arg-type]
        except (RuntimeError, chdb.ChdbError) as error:
            text = str(error)
            code = _CODE.search(text)
            raise EngineError(int(code[1]) if code else 0, text[code.start() :] if code else text) from error


def _named(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise EngineError(_BAD_ARGUMENTS, f"Code: {_BAD_ARGUMENTS}. DB::Exception: {name!r} is no setting. (BAD_ARGUMENTS)")
    return name


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
