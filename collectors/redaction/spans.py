"""Redaction of spans: everything in them that somebody else wrote."""

from collections import Counter
from typing import Any, Final

import msgspec

from collectors.redaction.redactor import LARGE, Counts, Redactor, bytes_in, text_of
from pipeline.config.redaction import FAILED
from pipeline.model.span import Attributes, Event, Link, Span

REDACTED: Final = "tracegrade.redacted"
"""The attribute that says how much was replaced in a span, its resource and its scope."""
REDACTION_FAILED: Final = "tracegrade.redaction_failed"
"""The attribute that says for how many values redaction failed."""


class RequestRedaction:
    """Redacts the spans of one request. ``counts`` says what was replaced in all of it."""

    def __init__(self, redactor: Redactor | None) -> None:
        """Take None where nothing is to be redacted, because it is off or was done before."""
        self._redactor: Final = redactor.for_request() if redactor is not None else None
        self.counts: Final[Counts] = Counter()
        self.of_origin: Counts = Counter()
        """What was replaced in the resource and the scope that were read last."""

    def origin(self, resource: Attributes, scope: tuple[str, str]) -> tuple[Attributes, str, str]:
        """Return what the next spans have in common, redacted: resource, scope's name and version."""
        name, version = scope
        if self._redactor is None:
            return resource, name, version
        self.of_origin = Counter()
        if self._redactor.suspects([*texts_of(resource), name, version]):
            resource = self._redactor.attributes(resource, self.of_origin)
            name, version = (self._redactor.text(text, self.of_origin) for text in scope)
            self.counts.update(self.of_origin)
        return resource, name, version

    def span(self, span: Span) -> Span:
        """Return a span of that origin, redacted, not sealed."""
        return span if self._redactor is None else redact_span(self._redactor, span, self.counts, self.of_origin)


def redact_span(redactor: Redactor, span: Span, counts: Counts, of_origin: Counts | None = None) -> Span:
    """Return a span without secrets; the same object where it has none. Seal it afterwards: the hash is of what is stored.

    The resource and the scope are those of many spans: redact them once, and say what was found there with ``of_origin``.
    """
    if not (redactor.suspects(_texts(span)) or of_origin):
        return span  # nearly every span
    inside: Counts = Counter()
    clean = _walked(redactor, span, inside)
    if inside:
        span = clean
        counts.update(inside)
    inside.update(of_origin or {})
    return msgspec.structs.replace(span, attributes=flagged_attributes(span.attributes, inside)) if inside else span


def flagged_attributes(attributes: Attributes, counts: Counts) -> Attributes:
    """Return attributes with two more that say how much was replaced, and how much could not be redacted."""
    failed = counts[FAILED]
    flags = {REDACTED: counts.total() - failed, REDACTION_FAILED: failed}
    return {**attributes, **{name: count for name, count in flags.items() if count}}


def _walked(redactor: Redactor, span: Span, counts: Counts) -> Span:
    return msgspec.structs.replace(
        span,
        name=redactor.text(span.name, counts),
        status_message=redactor.text(span.status_message, counts),
        trace_state=redactor.text(span.trace_state, counts),
        attributes=redactor.attributes(span.attributes, counts),
        events=tuple(
            [
                Event(redactor.text(event.name, counts), event.time_ns, redactor.attributes(event.attributes, counts))
                for event in span.events
            ]
        ),
        links=tuple([Link(link.trace_id, link.span_id, redactor.attributes(link.attributes, counts)) for link in span.links]),
    )


def _texts(span: Span) -> list[str]:
    """Return all text of a span, which is quicker to search together."""
    texts = [span.name, span.status_message, span.trace_state]
    _gather(span.attributes, texts)
    for event in span.events:
        texts.append(event.name)
        _gather(event.attributes, texts)
    for link in span.links:
        _gather(link.attributes, texts)
    return texts


def texts_of(attributes: Attributes) -> list[str]:
    """Return all text of attributes: names, and values however deep."""
    texts: list[str] = []
    _gather(attributes, texts)
    return texts


def _gather(attributes: Attributes, texts: list[str]) -> None:
    texts += attributes
    # Nearly every attribute is text.
    texts += [value if type(value) is str else _text_in(value) for value in attributes.values()]


def _text_in(value: Any) -> str:
    kind = type(value)
    if kind is int:
        return "" if -LARGE < value < LARGE else str(value)
    if kind is dict:
        raw = bytes_in(value)
        return "\n".join(texts_of(value)) if raw is None else text_of(raw)
    if kind is list:
        return "\n".join([item if type(item) is str else _text_in(item) for item in value])
    return ""
