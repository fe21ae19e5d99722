"""What both encodings of OTLP share: the walk over a request, and what makes a span acceptable.

A request is opened down to its resources, scopes and spans, which are still bytes then. So one that does not decode is refused alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from collectors.otlp.fitting import Loss, fewer, fewer_attributes, fitted, fitted_resource
from collectors.otlp.mending import MAX_DEPTH, MAX_VALUES
from collectors.redaction.redactor import Counts, Redactor
from collectors.redaction.spans import RequestRedaction
from pipeline.model.span import Attributes, Event, Link, Span, seal

TRACE_ID_SIZE: Final = 16
SPAN_ID_SIZE: Final = 8
_NO_TRACE: Final = bytes(TRACE_ID_SIZE)
_NO_SPAN: Final = bytes(SPAN_ID_SIZE)
MAX_TIME: Final = 2**63 - 1
MAX_ENUM: Final = 2**8 - 1
MAX_UINT32: Final = 2**32 - 1
MOST_REFUSED: Final = 100
KEPT_REFUSED: Final = 8 * 1024 * 1024
_REASONS: Final = 5
_REASON_LENGTH: Final = 200

Part = TypeVar("Part", bytes, msgspec.Raw)
Item = TypeVar("Item")


class BadSpanError(Exception):
    """One span, or log record, cannot be accepted. The message names the field and says what is wrong with it."""


class Refused(NamedTuple):
    """What was refused of a request, as a request of its own in the same encoding: what it takes to look at it, or to try again."""

    reason: str
    body: bytes


class Decoded(msgspec.Struct, frozen=True):
    """A request, read: its acceptable spans, sealed, and how many were refused and why."""

    spans: tuple[Span, ...] = ()
    rejected: int = 0
    message: str = ""
    """In English, for the sender; empty where nothing was refused."""
    refused: tuple[Refused, ...] = ()
    """What was refused, the first :data:`MOST_REFUSED` of it and within :data:`KEPT_REFUSED` bytes."""
    all_kept: bool = True
    """Whether ``refused`` has every span that was refused."""
    redacted: Counts = msgspec.field(default_factory=Counter)
    """What was replaced in the spans, by detector."""
    ignored: int = 0
    """Every span that can be read is kept."""

    @property
    def items(self) -> Sequence[Span]:
        """The spans, as what the receiver stores of any signal."""
        return self.spans


class Origin(NamedTuple):
    """What the items of one scope have in common."""

    project: str
    received_ns: int
    resource: Attributes
    scope_name: str
    scope_version: str


class Group(NamedTuple, Generic[Part]):
    """The items of one scope of one resource, each part still as it was sent."""

    resource: Part
    scope: Part
    items: Sequence[Part]


class Codec(NamedTuple, Generic[Part, Item]):
    """How one encoding reads the parts of a request. Each raises BadSpanError."""

    resource: Callable[[Part], Attributes]
    scope: Callable[[Part], tuple[str, str]]
    """Name and version."""
    item: Callable[[Part, Origin], Item | None]
    """None for what is well and of no use."""
    wrap: Callable[[Group[Part]], bytes]
    """The parts as a request again."""


Finish: TypeAlias = Callable[[Item, int], Item]
"""Redacts, fits and seals what was read, of so many bytes."""


def decode_groups(
    groups: Iterable[Group[Part]], codec: Codec[Part, Span], project: str, received_ns: int, redactor: Redactor | None
) -> Decoded:
    """Read every span of a request that can be read; a bad resource or scope refuses its own spans only."""
    redaction = RequestRedaction(redactor)

    def finish(span: Span, size: int) -> Span:
        kept, loss = fewer(span)
        # Texts are cut after everything that changes them: half of a secret is none that anybody would find.
        return seal(fitted(redaction.span(kept), size, loss))

    spans, refusals = read_items(groups, codec, finish, redaction, project, received_ns)
    told = refusals.explain("spans", len(spans))
    return Decoded(tuple(spans), refusals.rejected, told, tuple(refusals.kept), refusals.all_kept, redaction.counts)


def read_items(
    groups: Iterable[Group[Part]],
    codec: Codec[Part, Item],
    finish: Finish[Item],
    redaction: RequestRedaction,
    project: str,
    received_ns: int,
) -> "tuple[list[Item], Refusals[Part]]":
    """Return what can be accepted, and what cannot."""
    items: list[Item] = []
    refusals: Refusals[Part] = Refusals(codec.wrap)
    for group in groups:
        try:
            loss = Loss()
            whole = fewer_attributes(codec.resource(group.resource), loss)
            resource, *scope = redaction.origin(whole, codec.scope(group.scope))
            origin = Origin(project, received_ns, fitted_resource(resource, _size(group.resource), loss), *scope)
        except BadSpanError as error:
            refusals.add(str(error), group)
            continue
        for part in group.items:
            try:
                item = codec.item(part, origin)
                if item is not None:
                    items.append(finish(item, _size(part)))
            except BadSpanError as error:
                refusals.add(str(error), group._replace(items=(part,)))
    return items, refusals


def _size(part: bytes | msgspec.Raw) -> int:
    return len(part if isinstance(part, bytes) else memoryview(part))


class Refusals(Generic[Part]):
    """Counts what was refused of one request, and keeps as much of it as there is room for."""

    def __init__(self, wrap: Callable[[Group[Part]], bytes]) -> None:
        self._wrap: Final[Callable[[Group[Part]], bytes]] = wrap
        self._reasons: Counter[str] = Counter()
        self._bytes = 0
        self.kept: list[Refused] = []
        self.all_kept = True

    @property
    def rejected(self) -> int:
        """How many items were refused."""
        return self._reasons.total()

    def add(self, reason: str, group: Group[Part]) -> None:
        """Refuse all items of the group."""
        self._reasons[reason] += len(group.items)
        if len(self.kept) < MOST_REFUSED and self._bytes < KEPT_REFUSED:
            body = self._wrap(group)
            self._bytes += len(body)
            self.kept.append(Refused(reason, body))
        else:
            self.all_kept = False

    def explain(self, what: str, accepted: int) -> str:
        """Say in a bounded number of words (O11) what was refused; empty where nothing was."""
        if not self._reasons:
            return ""
        told = [f"{count} × {reason[:_REASON_LENGTH]}" for reason, count in self._reasons.most_common(_REASONS)]
        more = f"; and {len(self._reasons) - _REASONS} other reasons" if len(self._reasons) > _REASONS else ""
        return f"{self.rejected} of {accepted + self.rejected} {what} were rejected: {'; '.join(told)}{more}"


def accept(
    origin: Origin,
    *,
    trace_id: bytes,
    span_id: bytes,
    parent_id: bytes,
    name: str,
    start_ns: int,
    end_ns: int,
    kind: int,
    status_code: int,
    status_message: str,
    attributes: Attributes,
    events: tuple[Event, ...],
    links: tuple[Link, ...],
    trace_state: str,
    flags: int,
    dropped: int,
) -> Span:
    """Return the span, not sealed.

    Raises:
        BadSpanError: an id has the wrong length or says nothing (O12), or a number is outside what can be stored.
    """
    if len(trace_id) != TRACE_ID_SIZE or trace_id == _NO_TRACE:
        raise BadSpanError(bad_id("traceId", trace_id, TRACE_ID_SIZE))
    if len(span_id) != SPAN_ID_SIZE or span_id == _NO_SPAN:
        raise BadSpanError(bad_id("spanId", span_id, SPAN_ID_SIZE))
    if parent_id and len(parent_id) != SPAN_ID_SIZE:
        raise BadSpanError(bad_id("parentSpanId", parent_id, SPAN_ID_SIZE))
    if not (0 <= start_ns <= MAX_TIME and 0 <= end_ns <= MAX_TIME):
        raise BadSpanError("startTimeUnixNano and endTimeUnixNano must be nanoseconds since 1970 and before the year 2262")
    if not (0 <= kind <= MAX_ENUM and 0 <= status_code <= MAX_ENUM):
        raise BadSpanError("kind and status.code must be numbers that OTLP defines")
    if not (0 <= flags <= MAX_UINT32 and dropped >= 0):
        raise BadSpanError("flags and dropped counts must be unsigned 32-bit numbers")
    return Span(
        project=origin.project,
        trace_id=trace_id.hex(),
        span_id=span_id.hex(),
        # A root is sometimes sent with an all-zero parent (reliability R26).
        parent_id="" if parent_id == _NO_SPAN else parent_id.hex(),
        name=name,
        start_ns=start_ns,
        end_ns=end_ns,
        received_ns=origin.received_ns,
        kind=kind,
        status_code=status_code,
        status_message=status_message,
        attributes=attributes,
        events=events,
        links=links,
        resource=origin.resource,
        scope_name=origin.scope_name,
        scope_version=origin.scope_version,
        trace_state=trace_state,
        flags=flags,
        dropped=min(dropped, MAX_UINT32),
    )


def link_to(trace_id: bytes, span_id: bytes, attributes: Attributes) -> Link:
    """Return a link. One that leads nowhere is legal: the OpenTelemetry API keeps it for its attributes."""
    if trace_id and len(trace_id) != TRACE_ID_SIZE:
        raise BadSpanError(bad_id("links.traceId", trace_id, TRACE_ID_SIZE))
    if span_id and len(span_id) != SPAN_ID_SIZE:
        raise BadSpanError(bad_id("links.spanId", span_id, SPAN_ID_SIZE))
    return Link(trace_id.hex(), span_id.hex(), attributes)


def event_at(name: str, time_ns: int, attributes: Attributes) -> Event:
    """Return an event."""
    if not 0 <= time_ns <= MAX_TIME:
        raise BadSpanError("events.timeUnixNano must be nanoseconds since 1970 and before the year 2262")
    return Event(name, time_ns, attributes)


def check_depth(depth: int) -> None:
    """Refuse a value that is nested deeper than :data:`MAX_DEPTH`."""
    if depth > MAX_DEPTH:
        raise BadSpanError(f"an attribute is nested deeper than {MAX_DEPTH} levels")


def too_many_values(what: str) -> BadSpanError:
    """Return the refusal of what would take many times the memory that it was sent in."""
    return BadSpanError(f"{what} has more than {MAX_VALUES} values")


def bad_id(field: str, raw: bytes, size: int) -> str:
    """Say what is wrong with an id that must have ``size`` bytes."""
    if len(raw) == size:
        return f"{field} is all zeros"
    return f"{field} must be {size} bytes ({2 * size} hex digits in JSON), not {len(raw)}"
