"""The explanation of recorded traces, by the stages that grade them: read, assemble, group, make runs. Nothing is stored."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from collectors.dialects.dialect import Dialect
from collectors.dialects.ignored import ignored_because
from collectors.dialects.reader import Reader
from collectors.dialects.steps import GUARDRAIL, HANDOFF, UNRECOGNISED
from pipeline.apps.explain.missing import Content, Missing, content, missing
from pipeline.apps.explain.unused import Unused, unused
from pipeline.config.grading import grading_of
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.log_record import LogRecord
from pipeline.model.run import Run
from pipeline.model.span import Span
from pipeline.model.step import Step, StepKind
from pipeline.model.time import DAY
from pipeline.model.topology import Record
from pipeline.stages.assemble import TraceState
from pipeline.stages.close import AssembleSettings
from pipeline.stages.turn import Assembly, turn

_NO_RUN: Final = "its trace holds no agent, no model call and no tool call"
_BELOW: Final = "it is below a span that is no part of a run"


class SpanNote(msgspec.Struct, frozen=True):
    """How one span was read. ``rule`` says how the dialect was found, ``left_out`` why the span is in no run; both may be empty."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    scope: str
    depth: int
    dialect: str
    rule: str
    kind: StepKind
    what: str
    left_out: str
    flags: tuple[str, ...]
    error: str | None


class RunNote(msgspec.Struct, frozen=True):
    """A run, what it lacks, and how its dialects are told to send more."""

    run: Run
    missing: tuple[Missing, ...]
    content: tuple[Content, ...]


class Explanation(msgspec.Struct, frozen=True):
    """What files come to."""

    spans: tuple[SpanNote, ...]
    """Traces in the order of their first spans; in a trace parents before children, siblings by start."""
    log_records: int
    unused: tuple[Unused, ...]
    runs: tuple[RunNote, ...]


def explained(spans: Sequence[Span], log_records: Sequence[LogRecord], reader: Reader) -> Explanation:
    """Explain spans, and the log records beside them, with a reader's dialects."""
    states: dict[str, TraceState] = {}
    records: list[Record] = [*spans, *log_records]
    for record in records:
        states.setdefault(record.trace_id, TraceState(record.project, record.trace_id)).add([record])
    runs = [run for state in states.values() for run in _runs(state, reader)]
    counted = frozenset(step.span_id for run in runs for step in run.steps)
    by_trace: dict[str, list[Span]] = defaultdict(list)
    for span in {(span.trace_id, span.span_id): span for span in spans}.values():
        by_trace[span.trace_id].append(span)
    notes = [note for one in by_trace.values() for note in _notes(one, states[one[0].trace_id], counted, reader)]
    dialects = {dialect.name: dialect for dialect in reader.dialects}
    return Explanation(
        spans=tuple(notes),
        log_records=len(log_records),
        unused=unused(spans, reader.read),
        runs=tuple(_noted(run, dialects) for run in sorted(runs, key=lambda run: (run.start_ns, run.run_id))),
    )


def _noted(run: Run, dialects: Mapping[str, Dialect]) -> RunNote:
    lacks = missing(run)
    return RunNote(run, lacks, content(run, lacks, dialects))


def _runs(state: TraceState, reader: Reader) -> list[Run]:
    assembly = Assembly(read=reader.read, settings=AssembleSettings(), grading_of=grading_of(TracegradeSettings()))
    long_after = state.last_received_ns + 2 * DAY
    version = turn(state, long_after, long_after, assembly).version
    return [one.run for one in version.runs] if version else []


def _notes(spans: Sequence[Span], state: TraceState, counted: frozenset[str], reader: Reader) -> Iterable[SpanNote]:
    steps = state.steps(reader.read)
    for span, depth in _in_order(spans):
        step, detected = steps[span.span_id], reader.detect(span)
        ignored = ignored_because(span)
        yield SpanNote(
            trace_id=span.trace_id,
            span_id=span.span_id,
            parent_id=span.parent_id,
            name=span.name,
            scope=span.scope_name,
            depth=depth,
            dialect=step.dialect,
            rule="" if ignored or detected is None else detected.rule,
            kind=step.kind,
            what=_what(step),
            left_out="" if span.span_id in counted else _left_out(step, ignored, steps),
            flags=step.flags,
            error=step.error,
        )


def _in_order(spans: Sequence[Span]) -> Iterable[tuple[Span, int]]:
    """Yield spans as a tree is read, with their depth; what hangs in a cycle comes last."""
    known = {span.span_id for span in spans}
    below: dict[str, list[Span]] = defaultdict(list)
    for span in sorted(spans, key=lambda one: (one.start_ns, one.span_id), reverse=True):
        below[span.parent_id if span.parent_id in known and span.parent_id != span.span_id else ""].append(span)
    waiting = [(span, 0) for span in below.pop("", ())]
    while waiting or below:
        if not waiting:
            waiting = [(span, 0) for span in below.pop(next(iter(below)))]
        span, depth = waiting.pop()
        yield span, depth
        waiting += [(child, depth + 1) for child in below.pop(span.span_id, ())]


def _left_out(step: Step, ignored: str, steps: Mapping[str, Step]) -> str:
    """Return why a step is in no run."""
    if ignored:
        return ignored
    if step.kind is StepKind.IGNORED:
        return f"in {step.dialect} such a span is no part of a run"
    above, seen = steps.get(step.parent_id), {step.span_id}
    while above is not None and above.span_id not in seen:
        if above.kind is StepKind.IGNORED:
            return _BELOW
        seen.add(above.span_id)
        above = steps.get(above.parent_id)
    agent = any(one.kind in (StepKind.AGENT, StepKind.MODEL, StepKind.TOOL) for one in steps.values())
    return "it is above the run, or beside it" if agent else _NO_RUN


_WORDS: Final = {
    StepKind.AGENT: "agent",
    StepKind.ORCHESTRATION: "orchestration",
    StepKind.CHAIN: "wrapper",
    StepKind.MODEL: "model call",
    StepKind.TOOL: "tool call",
    StepKind.RETRIEVAL: "retrieval",
    StepKind.IGNORED: "ignored",
}


def _what(step: Step) -> str:
    """Return what the step is, in words, with the name that goes with it."""
    if UNRECOGNISED in step.flags:
        return "not recognised"
    if step.feedback and step.kind is StepKind.OTHER:
        return "feedback"
    if HANDOFF in step.flags:
        return f"hand-over {step.tool.name if step.tool else ''}".strip()
    if GUARDRAIL in step.flags:
        return "guardrail"
    if step.kind is StepKind.OTHER:
        return "other: its text may be the answer" if step.output else "other: counts for nothing"
    named = {StepKind.AGENT: step.agent, StepKind.MODEL: step.model, StepKind.TOOL: step.tool.name if step.tool else ""}
    return f"{_WORDS[step.kind]} {named.get(step.kind, '')}".strip()


def rules(notes: Iterable[SpanNote]) -> list[tuple[str, str, int]]:
    """Return by which rule how many spans were found to be in which dialect, the most frequent first."""
    return [
        (dialect, rule, count) for (dialect, rule), count in Counter((n.dialect, n.rule) for n in notes if n.rule).most_common()
    ]
