"""Results of evaluations that others made of a span, as the conventions write them (dialects reference, section 2).

They are feedback on the run that the span is part of. They are no judgments of ours, whatever they are called, and decide nothing by themselves.
"""

from typing import Any, Final

from collectors.dialects.attributes import as_text, captured, first_text
from pipeline.model import ids
from pipeline.model.result import Feedback
from pipeline.model.span import Event, Span

EVALUATION: Final = "gen_ai.evaluation.result"
_NAME: Final = "gen_ai.evaluation.name"
_VALUE: Final = "gen_ai.evaluation.score.value"
_LABEL: Final = "gen_ai.evaluation.score.label"
_EXPLANATION: Final = "gen_ai.evaluation.explanation"
_GOOD: Final = ("pass", "passed", "true", "correct", "relevant", "good", "positive", "up", "thumbs_up", "thumbs-up", "like", "👍")
_BAD: Final = (
    "fail",
    "failed",
    "false",
    "incorrect",
    "not_relevant",
    "bad",
    "negative",
    "down",
    "thumbs_down",
    "thumbs-down",
    "dislike",
    "👎",
)
_VALUES: Final = dict.fromkeys(_GOOD, 1.0) | dict.fromkeys(_BAD, -1.0)
"""What labels mean. A number alone means nothing: 0 is the best toxicity and the worst relevance."""


def evaluations(span: Span) -> tuple[Feedback, ...]:
    """Return what was found of the span, the same however often it was said."""
    found = (_evaluation(span, event) for event in span.events if event.name == EVALUATION)
    return tuple({one.id: one for one in found if one is not None}.values())


def _evaluation(span: Span, event: Event) -> Feedback | None:
    attributes = event.attributes
    value = _value(attributes)
    if value is None or captured(attributes.get("error.type")):  # the evaluation failed, which says nothing of the run
        return None
    author = f"evaluation {first_text(attributes, _NAME)}".strip()
    label, comment = first_text(attributes, _LABEL), first_text(attributes, _EXPLANATION)
    return Feedback(
        project=span.project,
        trace_id=span.trace_id,
        id=ids.digest(16, "evaluation", span.project, span.trace_id, span.span_id, author, label, repr(value), comment),
        value=value,
        author=author,
        comment=": ".join(filter(None, (label, comment))),
        received_ns=span.received_ns,
    )


def _value(attributes: dict[str, Any]) -> float | None:
    """Return the score: what the label says where it is a known word, else the number; None where there is neither."""
    known = _VALUES.get(as_text(attributes.get(_LABEL)).strip().lower())
    if known is not None:
        return known
    number = attributes.get(_VALUE)
    return float(number) if isinstance(number, int | float) and not isinstance(number, bool) else None
