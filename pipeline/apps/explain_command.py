"""``tracegrade explain``: what recorded and stored traces are understood as."""
# ruff: noqa: PLC0415 - a command imports what it needs

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec

from pipeline.apps.commands import ask, print_json
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from pipeline.apps.explain.explanation import Explanation, RunNote
    from pipeline.model.log_record import LogRecord
    from pipeline.model.span import Span
    from sinks.clickhouse.store import Store


def explain(files: Sequence[Path], config: Path | None, run_id: str, *, as_json: bool) -> int:
    """Explain what files of recorded traces hold, or the trace of a stored run."""
    if bool(files) == bool(run_id.strip()):
        what = "files and --run are two things to explain" if files else "there is nothing to explain"
        raise ConfigurationError(f"{what}; name files of recorded traces, or one stored run with --run ID")
    if files:
        from collectors.replay.arrived import arrived

        return _explain(*arrived(files), as_json=as_json)
    return _explain(*_stored(config, run_id.strip()), as_json=as_json)


async def facts_of(store: "Store", project: str, prefix: str) -> dict[str, Any]:
    """Return the spans and the log records of a stored run's trace.

    Raises:
        ConfigurationError: no run's id starts so, or several do.
    """
    key = (project, (await store.run_detail(project, prefix)).line.trace_id)
    trace = (await store.load([key]))[key]
    return {"spans": trace.spans, "log_records": trace.log_records}


def _stored(config: Path | None, run_id: str) -> "tuple[list[Span], list[LogRecord]]":
    from pipeline.config.load import load
    from pipeline.model.log_record import LogRecord
    from pipeline.model.span import Span

    found = ask(load(config), f"/api/facts?{urlencode({'run': run_id})}", lambda store, project: facts_of(store, project, run_id))
    return msgspec.convert(found["spans"], list[Span]), msgspec.convert(found["log_records"], list[LogRecord])


def _explain(spans: "Sequence[Span]", log_records: "Sequence[LogRecord]", *, as_json: bool) -> int:
    from collectors.dialects import plug_ins
    from pipeline.apps.explain.explanation import explained

    reader = plug_ins.installed()
    explanation = explained(spans, log_records, reader)
    if as_json:
        print_json(plain(explanation))
        return 0
    from pipeline.apps.explain.terminal import shown
    from pipeline.apps.show import console

    console().print(shown(explanation, {dialect.name: dialect for dialect in reader.dialects}))
    return 0


def plain(explanation: "Explanation") -> dict[str, Any]:
    """Return an explanation as plain JSON values."""
    told: dict[str, Any] = msgspec.to_builtins(explanation)
    return told | {"runs": [_run(one) for one in explanation.runs]}


def _run(note: "RunNote") -> dict[str, Any]:
    """Return a run by itself; its steps are the spans above, named by their ids."""
    told: dict[str, Any] = msgspec.to_builtins(note.run)
    steps = [step.span_id for step in note.run.steps]
    return told | {"steps": steps, "missing": msgspec.to_builtins(note.missing), "content": msgspec.to_builtins(note.content)}
