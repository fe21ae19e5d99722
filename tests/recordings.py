"""Recorded traces as spans and as runs: just enough reading of the corpus files for tests of what is made of them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from collectors.dialects import read
from pipeline.model.run import Cohort, Place, Run
from pipeline.model.span import Event, Span
from pipeline.model.step import Step, StepKind
from pipeline.stages.trajectory import as_run

CORPORA = Path(__file__).parent / "corpora"
_STATUS = {"UNSET": 0, "OK": 1, "ERROR": 2}


def otlp_spans(path: Path) -> list[Span]:
    """Spans of OTLP/JSON requests, one a line."""
    found = []
    for line in path.read_text().splitlines():
        for resource_spans in json.loads(line)["resourceSpans"]:
            resource = _attributes(resource_spans.get("resource", {}))
            for scope_spans in resource_spans["scopeSpans"]:
                found += [_otlp_span(span, scope_spans.get("scope", {}), resource) for span in scope_spans["spans"]]
    return found


def _otlp_span(span: dict[str, Any], scope: dict[str, Any], resource: dict[str, Any]) -> Span:
    status = span.get("status", {})
    end = int(span["endTimeUnixNano"])
    return Span(
        project="default",
        trace_id=span["traceId"],
        span_id=span["spanId"],
        parent_id=span.get("parentSpanId", ""),
        name=span["name"],
        start_ns=int(span["startTimeUnixNano"]),
        end_ns=end,
        received_ns=end,
        status_code=status.get("code", 0),
        status_message=status.get("message", ""),
        attributes=_attributes(span),
        events=tuple(Event(one["name"], attributes=_attributes(one)) for one in span.get("events", ())),
        resource=resource,
        scope_name=scope.get("name", ""),
    )


def _attributes(owner: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: _value(one["value"]) for one in owner.get("attributes", ())}


def _value(value: dict[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == "arrayValue":
        return [_value(one) for one in content.get("values", ())]
    return int(content) if kind == "intValue" else content


def dictionary_spans(path: Path) -> list[Span]:
    """Spans of the dictionaries that strands-evals keeps as fixtures."""
    document = json.loads(path.read_text())
    found = []
    for span in document if isinstance(document, list) else document["spans"]:
        status = span["status"]
        found.append(
            Span(
                project="default",
                trace_id=span["trace_id"],
                span_id=span["span_id"],
                parent_id=span["parent_span_id"] or "",
                name=span["name"],
                start_ns=span["start_time"],
                end_ns=span["end_time"],
                received_ns=span["end_time"],
                status_code=_STATUS[status["code"]],
                status_message=status.get("message") or "",
                attributes=span["attributes"],
                events=tuple(Event(one["event_name"], attributes=one["attributes"]) for one in span.get("span_events") or ()),
                scope_name=span["scope"]["name"],
            )
        )
    return found


def runs_of(spans: Iterable[Span]) -> list[Run]:
    """One run a trace that holds a model or tool call, by start: its topmost agent or orchestration heads it, else its topmost span."""
    traces: dict[str, list[Step]] = {}
    for span in spans:
        step = read(span)
        if step.kind is not StepKind.IGNORED:
            traces.setdefault(span.trace_id, []).append(step)
    runs = [_run(trace_id, _in_order(steps)) for trace_id, steps in traces.items()]
    return sorted((run for run in runs if run is not None), key=lambda run: run.start_ns)


def _in_order(steps: list[Step]) -> list[Step]:
    known = {step.span_id: step for step in steps}

    def key(step: Step) -> tuple[tuple[int, str], ...]:
        above = known.get(step.parent_id)
        return (*(key(above) if above else ()), (step.start_ns, step.span_id))

    return sorted(steps, key=key)


def _run(trace_id: str, steps: list[Step]) -> Run | None:
    if not any(step.kind in (StepKind.MODEL, StepKind.TOOL, StepKind.AGENT) for step in steps):
        return None
    known = {step.span_id for step in steps}
    tops = [step for step in steps if step.parent_id not in known]
    agents = [step for step in steps if step.kind in (StepKind.AGENT, StepKind.ORCHESTRATION)]
    head = tops[0] if tops[0].kind is StepKind.CHAIN else next(iter(agents), tops[0])
    agent = next((step.agent for step in steps if step.kind is StepKind.AGENT and step.agent), head.agent or head.service)
    return as_run(
        project="default",
        trace_id=trace_id,
        run_id=head.span_id,
        head=head,
        steps=_below(head, steps),
        place=Place(Cohort(agent=agent), 0),
        start_ns=head.start_ns,
        end_ns=head.end_ns,
        first_received_ns=min(step.received_ns for step in steps),
    )


def _below(head: Step, steps: list[Step]) -> tuple[Step, ...]:
    """Leave out what is above the head; keep what lost its parent."""
    parents: Mapping[str, Step] = {step.span_id: step for step in steps}
    above, step = set(), parents.get(head.parent_id)
    while step is not None:
        above.add(step.span_id)
        step = parents.get(step.parent_id)
    return tuple(step for step in steps if step.span_id not in above)
