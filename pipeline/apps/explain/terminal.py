"""An explanation for a terminal or a pipe: one screen for a small trace, and nothing in it that needs a manual."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from collectors.dialects.dialect import Dialect
from pipeline.apps.explain.explanation import Explanation, RunNote, SpanNote, rules
from pipeline.apps.explain.unused import Unused
from pipeline.apps.show import UNKNOWN, cell, counted, table
from pipeline.apps.text import as_json, visible
from pipeline.model.run import Run
from pipeline.model.step import StepKind, ToolCall

_LONGEST: Final = 600
"""Characters of an argument, a result or a message; ``--json`` has all of them."""
_MOST_SPANS: Final = 200
_DEEPEST: Final = 12
"""Levels that are still indented."""
_MOST_UNUSED: Final = 12
"""Names of attributes of a dialect."""


def shown(explanation: Explanation, dialects: Mapping[str, Dialect]) -> RenderableType:
    """Return all of it."""
    traces = len({note.trace_id for note in explanation.spans})
    beside = f" and {counted(explanation.log_records, 'log record')}" if explanation.log_records else ""
    head = f"{counted(len(explanation.spans), 'span')}{beside} in {counted(traces, 'trace')}: {counted(len(explanation.runs), 'run')}"
    parts: list[RenderableType] = [
        Text(head, style="bold"),
        Text(),
        _recognised(explanation.spans, dialects),
        Text(),
        _spans(explanation.spans),
    ]
    if explanation.unused:
        parts += [Text(), _unused(explanation.unused)]
    for number, one in enumerate(explanation.runs, start=1):
        parts += [Text(), _run(number, one)]
    if not explanation.runs:
        parts.append(Text("\nNo run: no span in here is an agent's, a model call or a tool call.", style="yellow"))
    return Group(*parts)


def _recognised(notes: Sequence[SpanNote], dialects: Mapping[str, Dialect]) -> RenderableType:
    made = table("Dialects", "dialect", "spans", "recognised by", "which is written by")
    for dialect, rule, count in rules(notes):
        title = dialects[dialect].about.title if dialect in dialects else UNKNOWN
        made.add_row(cell(dialect or UNKNOWN), str(count), cell(rule), cell(title))
    unknown = [note for note in notes if not note.dialect and note.kind is not StepKind.IGNORED]
    if unknown:
        scopes = ", ".join(sorted({note.scope or "without a scope" for note in unknown}))
        made.add_row("none", str(len(unknown)), "no dialect has such a scope or attribute", cell(f"scopes: {scopes}"))
    return made


def _spans(notes: Sequence[SpanNote]) -> RenderableType:
    made = table("Spans", "span", "read as", "dialect", "remarks")
    trace = ""
    for note in notes[:_MOST_SPANS]:
        if note.trace_id != trace:
            trace = note.trace_id
            made.add_row(Text(f"trace {trace}", style="dim"))
        made.add_row(
            Text("  " * min(note.depth, _DEEPEST)) + cell(note.name, longest=80),
            cell(note.what),
            note.dialect or UNKNOWN,
            Text("; ").join(_remarks(note)),
        )
    if len(notes) > _MOST_SPANS:
        made.add_row(Text(f"and {len(notes) - _MOST_SPANS} more; --json has all of them", style="dim"))
    return made


def _remarks(note: SpanNote) -> Iterator[Text]:
    if note.left_out:
        yield cell(f"in no run: {note.left_out}", style="yellow")
    if note.error is not None:
        yield cell(f"failed: {note.error}", style="red", longest=120)
    if note.flags:
        yield cell(", ".join(note.flags), style="dim")


def _unused(found: Sequence[Unused]) -> RenderableType:
    made = table(
        "Attributes that made no difference: unknown, or another says the same", "dialect", "attributes, and in how many spans"
    )
    by_dialect: dict[str, list[Unused]] = defaultdict(list)
    for one in found:
        by_dialect[one.dialect].append(one)
    for dialect, ones in by_dialect.items():
        most = sorted(ones, key=lambda one: (-one.spans, one.attribute))
        names = ", ".join(f"{one.attribute} ({one.spans})" for one in most[:_MOST_UNUSED])
        more = f", and {len(most) - _MOST_UNUSED} more" if len(most) > _MOST_UNUSED else ""
        made.add_row(dialect, cell(names + more, longest=2000))
    return made


def _run(number: int, note: RunNote) -> RenderableType:
    run = note.run
    facts = Table.grid(padding=(0, 2))
    for name, value in _facts(run):
        facts.add_row(Text(name, style="bold"), Text(visible(value)))
    parts: list[RenderableType] = [Text(f"Run {number}", style="bold underline"), facts]
    parts += [*_said("Request", run.request), *_calls(run.tool_calls), *_said("Answer", run.answer)]
    if note.missing:
        lacks = table("What is missing", "missing", "so", "how to have it")
        for one in note.missing:
            lacks.add_row(cell(one.what), cell(one.so), cell(one.how))
        parts += [Text(), lacks]
    parts += [Text(visible(f"\n{line}")) for line in _switches(note)]
    return Group(*parts)


def _switches(note: RunNote) -> Iterator[str]:
    for one in note.content:
        yield f"{one.title}. By default: {one.default}."
        if one.switch:
            yield f"To switch content on: {one.switch}."


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    cohort = run.place.cohort
    yield "agent", f"{cohort.agent}, version {cohort.version}, environment {cohort.environment}"
    if run.agents:
        yield "sub-agents", ", ".join(run.agents)
    yield "conversation", run.conversation_id or UNKNOWN
    yield "turns", f"{counted(run.model_calls, 'model call')} of {', '.join(run.models) or UNKNOWN}"
    yield "tokens", _tokens(run)
    yield "tools", ", ".join(tool.name for tool in run.tools) or UNKNOWN
    yield "ended with", f"{run.ended}: {run.error}" if run.error else str(run.ended)
    yield "spans", f"{len(run.steps)}, read as {', '.join(run.dialects) or UNKNOWN}"
    yield "flags", ", ".join(run.flags) or UNKNOWN


def _tokens(run: Run) -> str:
    usage = run.usage
    counts = (
        ("in", usage.input),
        ("of them cached", usage.cached),
        ("out", usage.output),
        ("of them reasoning", usage.reasoning),
    )
    return ", ".join(f"{count} {name}" for name, count in counts if count is not None) or UNKNOWN


def _said(title: str, text: str | None) -> tuple[RenderableType, ...]:
    return Text(f"\n{title}", style="bold"), Padding(cell(text or UNKNOWN, longest=_LONGEST), (0, 2))


def _calls(calls: Sequence[ToolCall]) -> tuple[RenderableType, ...]:
    if not calls:
        return ()
    made = table("\nTool calls", "tool", "arguments", "result")
    for call in calls:
        arguments = call.raw_arguments if call.arguments is None else call.arguments
        result = cell(_plain(call.result), longest=_LONGEST)
        failed = cell(f"failed: {call.error}", style="red", longest=_LONGEST)
        made.add_row(
            cell(call.name, longest=60), cell(_plain(arguments), longest=_LONGEST), result if call.error is None else failed
        )
    return (made,)


def _plain(value: Any) -> str:
    if value is None or value == "":
        return UNKNOWN
    return value if isinstance(value, str) else msgspec.json.format(as_json(value), indent=0)
