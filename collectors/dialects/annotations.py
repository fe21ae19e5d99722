"""Annotations: what people and graders say of a span, on that span or on a carrier that links to it (dialects reference, sections 3 and 13).

A carrier is sent hours later, in a trace of its own. It is no part of that trace's runs, and the trace it links to is not its child: what it
says becomes feedback on the run that the linked span is part of, wherever that run is held.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, Final

import msgspec

from collectors.dialects.attributes import first_text
from collectors.dialects.evaluations import EVALUATION, evaluations
from collectors.dialects.ignored import ignored_because
from pipeline.model.result import Feedback
from pipeline.model.span import Attributes, Event, Span

_SPELLINGS: Final = ("annotation", "evaluation")
_OF_SPAN: Final = ""
_OF_TRACE: Final = "trace."
_MARKS: Final = tuple(f"{scope}{one}s.0.{one}.name" for scope in (_OF_SPAN, _OF_TRACE) for one in _SPELLINGS)


def annotations(span: Span) -> tuple[Feedback, ...]:
    """Return what is said of the span on the span itself."""
    if not any(mark in span.attributes for mark in _MARKS):
        return ()
    said = tuple(event for scope in (_OF_SPAN, _OF_TRACE) for event in _said(span.attributes, scope))
    return evaluations(msgspec.structs.replace(span, events=said))


def carried(records: Iterable[object]) -> list[Feedback]:
    """Return the feedback that the carriers among these records bring, the same however often they come."""
    return [found for one in records if isinstance(one, Span) and len(one.links) == 1 for found in _carried(one)]


def _carried(span: Span) -> Iterator[Feedback]:
    """Yield what a span that is no part of any run says of the one span it links to, or of all runs of its trace."""
    if not ignored_because(span):
        return
    (link,) = span.links
    of_span = [event for event in span.events if event.name == EVALUATION]
    if "gen_ai.evaluation.name" in span.attributes:
        of_span.append(Event(EVALUATION, attributes=span.attributes))
    for target, said in (
        (link.span_id, (*of_span, *_said(span.attributes, _OF_SPAN))),
        ("", tuple(_said(span.attributes, _OF_TRACE))),
    ):
        if said:
            about = msgspec.structs.replace(span, trace_id=link.trace_id, span_id=target, events=said)
            yield from (msgspec.structs.replace(found, span_id=target) for found in evaluations(about))


def _said(attributes: Attributes, scope: str) -> Iterator[Event]:
    """Yield the numbered annotations of a scope as the events that say the same."""
    for one in _SPELLINGS:
        for number in count():
            prefix = f"{scope}{one}s.{number}.{one}."
            name = first_text(attributes, f"{prefix}name")
            if not name:
                break
            by = first_text(attributes, f"{prefix}identifier")
            said: dict[str, Any] = {
                "gen_ai.evaluation.name": f"{name} by {by}" if by else name,
                "gen_ai.evaluation.score.label": attributes.get(f"{prefix}label"),
                "gen_ai.evaluation.score.value": attributes.get(f"{prefix}score"),
                "gen_ai.evaluation.explanation": attributes.get(f"{prefix}explanation"),
            }
            yield Event(EVALUATION, attributes={key: value for key, value in said.items() if value is not None})
