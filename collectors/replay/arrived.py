"""Recorded traces as what would have arrived: spans, and the log records beside them, decoded as the receiver decodes them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from collectors.otlp import protobuf
from collectors.otlp.logs import decode_json
from collectors.replay.documents import documents
from collectors.replay.recording import read
from pipeline.errors import ConfigurationError
from pipeline.model.log_record import LogRecord
from pipeline.model.span import Span
from pipeline.model.time import SECOND

_PROJECT: Final = "default"


def arrived(paths: Iterable[Path]) -> tuple[list[Span], list[LogRecord]]:
    """Return what the files hold, as if all of it had come a second after the last span ended.

    Raises:
        ConfigurationError: a file is missing or broken, or none of them holds a span.
    """
    files = list(paths)
    logs = [record for path in files if path.is_file() for record in _log_records(path)]
    kept = [path for path in files if not (path.is_file() and _holds_only_logs(path))]
    spans = [span for recording in read(kept) for request in recording.requests() for span in _spans(request.SerializeToString())]
    if not spans:
        raise ConfigurationError(f"{', '.join(map(str, files))}: no spans in there; give files of recorded traces")
    received = max([SECOND, *(max(span.end_ns, span.start_ns) + SECOND for span in spans)])
    return (
        [msgspec.structs.replace(span, received_ns=received) for span in spans],
        [msgspec.structs.replace(record, received_ns=received) for record in logs],
    )


def _spans(body: bytes) -> Iterator[Span]:
    yield from protobuf.decode(body, _PROJECT, 1).items


def _log_records(path: Path) -> Iterator[LogRecord]:
    for document in documents(path):
        if _is_logs(document.value):
            yield from decode_json(msgspec.json.encode(document.value), _PROJECT, 1).items


def _holds_only_logs(path: Path) -> bool:
    return all(_is_logs(document.value) for document in documents(path))


def _is_logs(value: Any) -> bool:
    return isinstance(value, dict) and "resourceLogs" in value
