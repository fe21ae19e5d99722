"""Recorded traces as what arrived, and as the runs that the pipeline makes of it: decoded, read, assembled, made into runs."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import msgspec

from collectors.dialects import read
from collectors.otlp import json, protobuf
from collectors.otlp.logs import decode_json as decode_logs
from collectors.replay import requests_of
from pipeline.config.grading import grading_of
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.log_record import LogRecord
from pipeline.model.run import Run
from pipeline.model.span import Span
from pipeline.model.time import DAY, SECOND
from pipeline.model.version import RunVersion
from pipeline.stages.assemble import TraceState
from pipeline.stages.close import AssembleSettings
from pipeline.stages.turn import Assembly, turn

CORPORA = Path(__file__).parent / "corpora"
LOGS = ".logs.jsonl"
PROJECT = "default"
_ASSEMBLY = Assembly(read=read, settings=AssembleSettings(), grading_of=grading_of(TracegradeSettings()))


def recordings(folder: str = "") -> list[Path]:
    """Every file of the corpora, or of one folder of them, that holds spans."""
    found = (path for path in (CORPORA / folder).rglob("*.json*") if path.stem != "truth" and not path.name.endswith(LOGS))
    return sorted(found)


def spans_of(path: Path) -> list[Span]:
    """The spans of a file, all received a second after the last of them ended."""
    spans = _spans_of(path)
    received = max(span.end_ns for span in spans) + SECOND
    return [msgspec.structs.replace(span, received_ns=received) for span in spans]


@cache
def _spans_of(path: Path) -> list[Span]:
    if path.suffix == ".jsonl":  # as it came over the wire
        return [span for line in path.read_bytes().splitlines() for span in json.decode(line, PROJECT, 1).items]
    return [span for one in requests_of(path) for span in protobuf.decode(one.SerializeToString(), PROJECT, 1).items]


def log_records_of(path: Path) -> list[LogRecord]:
    """The log records that were sent beside the spans of a file."""
    beside = path.with_name(path.stem + LOGS)
    lines = beside.read_bytes().splitlines() if beside.exists() else []
    return [record for line in lines for record in decode_logs(line, PROJECT, 1).items]


def arrived(path: Path) -> list[Span | LogRecord]:
    """All that was sent of a file."""
    return [*spans_of(path), *log_records_of(path)]


def runs_of(records: Iterable[Span | LogRecord]) -> list[Run]:
    """The runs of these traces by start, once all has come and every clock has run out."""
    return [one.run for one in graded(records)]


def graded(records: Iterable[Span | LogRecord], assembly: Assembly = _ASSEMBLY) -> list[RunVersion]:
    """The same runs with all that is said of them."""
    traces: dict[str, list[Span | LogRecord]] = {}
    for record in records:
        traces.setdefault(record.trace_id, []).append(record)
    runs = [run for trace_id, one in traces.items() for run in _graded(trace_id, one, assembly)]
    return sorted(runs, key=lambda one: (one.run.start_ns, one.run.run_id))


def _graded(trace_id: str, records: list[Span | LogRecord], assembly: Assembly) -> tuple[RunVersion, ...]:
    state = TraceState(PROJECT, trace_id)
    for record in records:
        state.add([record])
    now = state.last_received_ns + 2 * DAY
    version = turn(state, now, now, assembly).version
    return version.runs if version else ()
