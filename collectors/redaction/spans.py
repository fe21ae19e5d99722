"""Redaction of spans: everything in them that somebody else wrote."""

from collections import Counter
from typing import Any, Final

import msgspec

from collectors.redaction.redactor import Redactor
from collectors.redaction.texts import add_texts, texts_of
from collectors.redaction.walk import Counts, Walk
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
        walk = self._redactor.look([*texts_of(resource), name, version], self.of_origin)
        if walk is not None:
            resource, name, version = walk.attributes(resource), walk.text(name), walk.text(version)
            self.counts.update(self.of_origin)
        return resource, name, version

    def span(self, span: Span) -> Span:
        """Return a span of that origin, redacted, not sealed."""
        return span if self._redactor is None else redact_span(self._redactor, span, self.counts, self.of_origin)


def redact_span(redactor: Redactor, span: Span, counts: Counts, of_origin: Counts | None = None) -> Span:
    """Return a span without secrets; the same object where it has none. Seal it afterwards: the hash is of what is stored.

    The resource and the scope are those of many spans: redact them once, and say what was found there with ``of_origin``.
    """
    inside: Counts = Counter()
    walk = redactor.look(_texts(span), inside)
    if walk is None and not of_origin:
        return span  # nearly every span
    fields = _walked(walk, span) if walk is not None else {}
    counts.update(inside)
    if of_origin:
        inside.update(of_origin)
    if not inside:
        return span
    fields["attributes"] = flagged_attributes(fields.get("attributes", span.attributes), inside)
    return msgspec.structs.replace(span, **fields)


def flagged_attributes(attributes: Attributes, counts: Counts) -> Attributes:
    """Return attributes with two more that say how much was replaced, and how much could not be redacted."""
    failed = counts[FAILED]
    flags = {REDACTED: counts.total() - failed, REDACTION_FAILED: failed}
    return {**attributes, **{name: count for name, count in flags.items() if count}}


def _walked(walk: Walk, span: Span) -> dict[str, Any]:
    """Return the fields in which there may be something, without secrets."""
    fields: dict[str, Any] = {
        "name": walk.text(span.name),
        "status_message": walk.text(span.status_message),
        "trace_state": walk.text(span.trace_state),
        "attributes": walk.attributes(span.attributes),
    }
    if span.events:
        fields["events"] = tuple(
            [Event(walk.text(event.name), event.time_ns, walk.attributes(event.attributes)) for event in span.events]
        )
    if span.links:
        fields["links"] = tuple([Link(link.trace_id, link.span_id, walk.attributes(link.attributes)) for link in span.links])
    return fields


def _texts(span: Span) -> list[str]:
    """Return all text of a span, which is quicker to search together."""
    texts = [span.name, span.status_message, span.trace_state]
    add_texts(span.attributes, texts)
    for event in span.events:
        texts.append(event.name)
        add_texts(event.attributes, texts)
    for link in span.links:
        add_texts(link.attributes, texts)
    return texts
