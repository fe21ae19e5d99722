"""Fitting: a span of any size becomes one that every store and broker takes. No span is refused for its size (promise 1).

What is too large keeps the head and the tail of its longest texts, with their length and hash between (:func:`cut`); what is too many keeps
the first ones, and counts the others as dropped. The span says so in its attribute ``tracegrade.truncated``. All of it is a function of what
was decoded, so both encodings and both runtimes give the same span, and one that was fitted before stays as it is.
"""

from itertools import islice
from typing import Any, Final

import msgspec

from collectors.otlp.cutting import LEAST, Content, cut, cut_texts, flattened, level_of, measured, shed
from collectors.redaction.spans import REDACTED, REDACTION_FAILED
from pipeline.model.span import TRUNCATED_FIELDS, Attributes, Event, Link, Span

MAX_SPAN: Final = 4 * 1024 * 1024
"""Bytes of a span as OTLP in protobuf, without its resource and scope."""
MAX_RESOURCE: Final = 1024 * 1024
"""Bytes of a resource: with the largest span it fits into a record of a broker."""
MAX_ATTRIBUTES: Final = 1024
"""Attributes of a span, an event, a link or a resource (reliability S11)."""
MAX_EVENTS: Final = 1024
MAX_LINKS: Final = 1024
MAX_NAME: Final = 1024
"""Characters of an attribute's key, and of a scope's name and version."""
MEASURED_ABOVE: Final = 16
"""What was sent in a sixteenth of a limit is below it, however it was encoded, mended and redacted: it is not even measured."""
OWN: Final = (REDACTED, REDACTION_FAILED, TRUNCATED_FIELDS)
"""Attributes that the product sets, beside those of the sender."""
_TOLD: Final = 64
_TOLD_LENGTH: Final = 128
_ROOM_FOR_FLAG: Final = 64 * 1024
"""Bytes beside the limit that the names of cut fields never fill."""
_MOST_DROPPED: Final = 2**32 - 1


class Loss:
    """What a span or a resource lost: the names of its fields, and how many attributes, events and links."""

    def __init__(self) -> None:
        self.fields: dict[str, None] = {}
        self.dropped = 0

    def drop(self, field: str, count: int) -> None:
        """Take note that so many are left out."""
        self.fields[field] = None
        self.dropped += count

    def flagged(self, attributes: Attributes) -> Attributes:
        """Return the attributes with the names of what was lost, the first 64 of them."""
        if not self.fields:
            return attributes
        return {**attributes, TRUNCATED_FIELDS: [name[:_TOLD_LENGTH] for name in islice(self.fields, _TOLD)]}


def fewer(span: Span) -> tuple[Span, Loss | None]:
    """Return the span with the first of too many attributes, events and links, and what it lost; before anybody looks at each of them."""
    if len(span.attributes) <= MAX_ATTRIBUTES and not span.events and not span.links:
        return span, None  # nearly every span
    loss = Loss()
    attributes = fewer_attributes(span.attributes, loss)
    events, links = _fewer_events(span.events, loss), _fewer_links(span.links, loss)
    if not loss.fields:
        return span, loss
    return msgspec.structs.replace(span, attributes=attributes, events=events, links=links), loss


def fewer_attributes(attributes: Attributes, loss: Loss, field: str = "attributes") -> Attributes:
    """Return the first of too many attributes. What the product itself sets does not count: it may have been set before."""
    more = len(attributes) - MAX_ATTRIBUTES
    if more > 0:
        more -= sum(key in attributes for key in OWN)
    if more <= 0:
        return attributes
    loss.drop(field, more)
    kept = dict(islice(((key, value) for key, value in attributes.items() if key not in OWN), MAX_ATTRIBUTES))
    return kept | {key: attributes[key] for key in OWN if key in attributes}


def _fewer_events(events: tuple[Event, ...], loss: Loss) -> tuple[Event, ...]:
    if len(events) > MAX_EVENTS:
        loss.drop("events", len(events) - MAX_EVENTS)
    kept = [(event, fewer_attributes(event.attributes, loss, "events.attributes")) for event in events[:MAX_EVENTS]]
    return tuple([Event(event.name, event.time_ns, attributes) for event, attributes in kept])


def _fewer_links(links: tuple[Link, ...], loss: Loss) -> tuple[Link, ...]:
    if len(links) > MAX_LINKS:
        loss.drop("links", len(links) - MAX_LINKS)
    kept = [(link, fewer_attributes(link.attributes, loss, "links.attributes")) for link in links[:MAX_LINKS]]
    return tuple([Link(link.trace_id, link.span_id, attributes) for link, attributes in kept])


def fitted(span: Span, size: int, loss: Loss | None) -> Span:
    """Return the span within all limits, not sealed; ``size`` is how many bytes it was sent in, ``loss`` what it lost before."""
    if loss is None:
        if size <= MAX_SPAN // MEASURED_ABOVE and not _has_long_key(span.attributes) and not _has_long_scope(span):
            return span  # nearly every span
        loss = Loss()
    fields = _shorter_names(span, loss)
    if size > MAX_SPAN // MEASURED_ABOVE:
        fields |= _smaller(msgspec.structs.replace(span, **fields), loss)
    if not loss.fields:
        return span
    attributes = loss.flagged(fields.get("attributes", span.attributes))
    return msgspec.structs.replace(
        span, **fields | {"attributes": attributes, "dropped": min(span.dropped + loss.dropped, _MOST_DROPPED)}
    )


def fitted_resource(resource: Attributes, size: int, loss: Loss) -> Attributes:
    """Return a resource's attributes within all limits, as :func:`fitted` does."""
    kept = _short_keys(resource, "attributes", loss)
    if size > MAX_RESOURCE // MEASURED_ABOVE:
        kept = within({"attributes": kept}, MAX_RESOURCE, loss)["attributes"]
    return loss.flagged(kept)


def _shorter_names(span: Span, loss: Loss) -> dict[str, Any]:
    """Return the fields with keys and names that had to be cut."""
    fields: dict[str, Any] = {}
    if _has_long_key(span.attributes):
        fields["attributes"] = _short_keys(span.attributes, "attributes", loss)
    if any(_has_long_key(event.attributes) for event in span.events):
        fields["events"] = tuple(
            Event(event.name, event.time_ns, _short_keys(event.attributes, "events.attributes", loss)) for event in span.events
        )
    if any(_has_long_key(link.attributes) for link in span.links):
        fields["links"] = tuple(
            Link(link.trace_id, link.span_id, _short_keys(link.attributes, "links.attributes", loss)) for link in span.links
        )
    if _has_long_scope(span):
        loss.fields["scope"] = None
        fields |= {"scope_name": _name(span.scope_name), "scope_version": _name(span.scope_version)}
    return fields


def _has_long_key(attributes: Attributes) -> bool:
    return bool(attributes) and max(map(len, attributes)) > MAX_NAME


def _has_long_scope(span: Span) -> bool:
    return len(span.scope_name) > MAX_NAME or len(span.scope_version) > MAX_NAME


def _short_keys(attributes: Attributes, field: str, loss: Loss) -> Attributes:
    if not _has_long_key(attributes):
        return attributes
    loss.fields[f"{field} (keys)"] = None
    return {_name(key): value for key, value in attributes.items()}


def _name(name: str) -> str:
    return cut(name, MAX_NAME) if len(name) > MAX_NAME else name


def _smaller(span: Span, loss: Loss) -> dict[str, Any]:
    """Return the fields that had to be cut for the span to be small enough."""
    content: Content = {
        "name": span.name,
        "status_message": span.status_message,
        "trace_state": span.trace_state,
        "attributes": span.attributes,
        "events": [{"name": event.name, "attributes": event.attributes} for event in span.events],
        "links": [{"attributes": link.attributes} for link in span.links],
    }
    kept = within(content, MAX_SPAN, loss)
    if kept is content:
        return {}
    events = zip(span.events, kept["events"], strict=False)
    links = zip(span.links, kept["links"], strict=False)
    return kept | {
        "events": tuple(Event(one["name"], event.time_ns, one["attributes"]) for event, one in events),
        "links": tuple(Link(link.trace_id, link.span_id, one["attributes"]) for link, one in links),
    }


def within(content: Content, limit: int, loss: Loss) -> Content:
    """Return content of at most ``limit`` bytes: its longest texts cut, where that is not enough structures too, and then the last ones left out."""
    if measured(content) <= limit:
        return content
    limit -= _ROOM_FOR_FLAG
    level = level_of(content, limit)
    if level < LEAST:
        content = flattened(content, loss.fields)
        level = max(level_of(content, limit), LEAST)
    content = cut_texts(content, level, loss.fields)
    for field, count in shed(content, limit).items():
        loss.drop(field, count)
    return content
