"""Recordings: files, or all such files of a folder, as OTLP requests.

A file is read twice, once to count what is in it and once to send it, so that its size costs time and not memory.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from google.protobuf.json_format import ParseError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.replay.documents import documents
from collectors.replay.shapes import Shape, known, no_spans, shape_of
from collectors.replay.wire import spans_in
from pipeline.errors import ConfigurationError

_SUFFIXES: Final = (".json", ".jsonl", ".ndjson")
_LOOKED_FOR: Final = f"files whose names end in {', '.join(_SUFFIXES)}"


class Recording(msgspec.Struct, frozen=True):
    """One file. Where it holds no spans, ``skipped`` says what it is instead, and it has no requests."""

    path: Path
    source: str = ""
    """Names of the shapes that were found in it."""
    spans: int = 0
    latest_ns: int = 0
    """Its latest time; 0 where no span has one."""
    transcript: bool = False
    """It was converted from transcripts: its times are made up."""
    skipped: str = ""

    def requests(self) -> Iterator[ExportTraceServiceRequest]:
        """Read the file again and yield its requests, in its order."""
        if not self.skipped:
            yield from _requests(self.path)


def read(paths: Sequence[Path]) -> Iterator[Recording]:
    """Yield a recording per file, in the order given; of a folder those below it whose names end in .json, .jsonl or .ndjson, by name.

    Raises:
        ConfigurationError: a path is missing, a folder has no such file, a file is broken, or a file that was named holds nothing of a known shape.
            In a folder, such a file is skipped.
    """
    for path in paths:
        if path.is_dir():
            files = _files(path)
            if not files:
                raise ConfigurationError(
                    f"there are no recorded traces in {path}: {_LOOKED_FOR} are looked for, in folders below it too"
                )
            yield from (_recording(file, named=False) for file in files)
        elif path.exists():
            yield _recording(path, named=True)
        else:
            raise ConfigurationError(f"{path} does not exist; give files or folders of recorded traces")


def requests_of(path: Path) -> list[ExportTraceServiceRequest]:
    """Return what a file holds as OTLP requests, ids mapped and times as recorded."""
    return list(_requests(path))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())


def _recording(path: Path, *, named: bool) -> Recording:
    sources: dict[str, Shape] = {}
    spans = latest = 0
    passed_over: list[str] = []
    for line, document in _items(path):
        shape = shape_of(document)
        if shape is None:
            what = no_spans(document)
            if not what and named:
                raise ConfigurationError(f"{path}, line {line}: {_unknown(document)}. The shapes known are:\n{known()}")
            passed_over.append(what or _unknown(document))
            continue
        sources[shape.name] = shape
        for request in _converted(path, line, shape, document):
            for span in spans_in(request):
                spans += 1
                latest = max(latest, span.start_time_unix_nano, span.end_time_unix_nano)
    return Recording(
        path=path,
        source=", ".join(sources),
        spans=spans,
        latest_ns=latest,
        transcript=bool(sources) and all(shape.transcript for shape in sources.values()),
        skipped="" if spans else _why(sources, passed_over),
    )


def _why(sources: dict[str, Shape], passed_over: list[str]) -> str:
    if passed_over and not sources:
        return f"holds no spans but {passed_over[0]}"
    return "holds no spans"


def _unknown(document: Any) -> str:
    if document == {}:
        return "an empty object"
    if isinstance(document, dict):
        keys = ", ".join(sorted(map(str, document))[:6])
        return f"an object of unknown shape (its keys: {keys})"
    return f"a JSON {type(document).__name__} of unknown shape"


def _requests(path: Path) -> Iterator[ExportTraceServiceRequest]:
    for line, document in _items(path):
        shape = shape_of(document)
        if shape is not None:
            yield from _converted(path, line, shape, document)


def _items(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield what has a shape of its own: each document, or each item of a list that is no shape as a whole."""
    for document in documents(path):
        if isinstance(document.value, list) and shape_of(document.value) is None:
            yield from ((document.line, item) for item in document.value)
        else:
            yield document.line, document.value


def _converted(path: Path, line: int, shape: Shape, document: Any) -> Iterator[ExportTraceServiceRequest]:
    """Convert a document, and say where a file is that has the shape's keys and something else under them."""
    try:
        yield from shape.requests(document, path.name)
    except (AttributeError, KeyError, TypeError, ValueError, ParseError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigurationError(f"{path}, line {line} looks like {shape.name}, but cannot be read as such ({reason})") from error
