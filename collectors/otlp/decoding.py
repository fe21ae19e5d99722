"""What both encodings of OTLP and all signals share: the walk over a request, and what becomes of what cannot be accepted.

A request is opened down to its resources, scopes and items, which are still bytes then. So one that does not decode is refused alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from collectors.redaction.walk import Counts
from pipeline.model.span import Attributes

TRACE_ID_SIZE: Final = 16
SPAN_ID_SIZE: Final = 8
MAX_TIME: Final = 2**63 - 1
MAX_ENUM: Final = 2**8 - 1
MAX_UINT32: Final = 2**32 - 1
MOST_REFUSED: Final = 100
KEPT_REFUSED: Final = 8 * 1024 * 1024
_REASONS: Final = 5
_REASON_LENGTH: Final = 200

Part = TypeVar("Part", bytes, msgspec.Raw)
Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class BadSpanError(Exception):
    """One span, or log record, cannot be accepted. The message names the field and says what is wrong with it."""


class Refused(NamedTuple):
    """What was refused of a request, as a request of its own in the same encoding: what it takes to look at it, or to try again."""

    reason: str
    body: bytes


class Decoded(msgspec.Struct, Generic[Item], frozen=True):
    """A request, read: what can be accepted of it, and how much was refused and why."""

    items: tuple[Item, ...] = ()
    """Spans, parts or log records, redacted and fitted; nouns are sealed."""
    rejected: int = 0
    message: str = ""
    """In English, for the sender; empty where nothing was refused."""
    refused: tuple[Refused, ...] = ()
    """What was refused, the first :data:`MOST_REFUSED` of it and within :data:`KEPT_REFUSED` bytes."""
    all_kept: bool = True
    """Whether ``refused`` has everything that was refused."""
    redacted: Counts = msgspec.field(default_factory=Counter)
    """What was replaced in the items, by detector."""
    ignored: int = 0
    """How many are well, and of no use to anybody here."""
    truncated: int = 0
    """How many of the items were too large and are not whole."""

    @property
    def spans(self) -> tuple[Item, ...]:
        """The items, where they are spans."""
        return self.items


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
    received_ns: int = 0
    """When they were received, where the request itself says so: on our own topics."""


class Codec(NamedTuple, Generic[Part, Item]):
    """How one encoding reads the parts of a request. Each raises BadSpanError."""

    resource: Callable[[Part], Attributes]
    scope: Callable[[Part], tuple[str, str]]
    """Name and version."""
    item: Callable[[Part, Origin], Item]
    wrap: Callable[[Group[Part]], bytes]
    """The parts as a request again."""


class Reader(Protocol[Part, Item_co]):
    """Makes of the parts of one request what is stored. Both methods raise BadSpanError."""

    @property
    def counts(self) -> Counts:
        """What was replaced so far, by detector."""
        ...

    @property
    def truncated(self) -> int:
        """How many items are not whole."""
        ...

    def open(self, group: Group[Part]) -> None:
        """Read what the items of a group have in common."""
        ...

    def read(self, part: Part) -> Item_co | None:
        """Return an item of the group that was opened last; None where it is well and of no use."""
        ...


def read_groups(
    groups: Iterable[Group[Part]], reader: Reader[Part, Item], wrap: Callable[[Group[Part]], bytes], what: str
) -> Decoded[Item]:
    """Read every item of a request that can be read; a bad resource or scope refuses its own items only. ``what`` names the items."""
    items: list[Item] = []
    refusals: Refusals[Part] = Refusals(wrap)
    total = 0
    for group in groups:
        total += len(group.items)
        try:
            reader.open(group)
        except BadSpanError as error:
            refusals.add(str(error), group)
            continue
        for part in group.items:
            try:
                item = reader.read(part)
            except BadSpanError as error:
                refusals.add(str(error), group._replace(items=(part,)))
            else:
                if item is not None:
                    items.append(item)
    rejected = refusals.rejected
    return Decoded(
        tuple(items),
        rejected,
        refusals.explain(what, total),
        tuple(refusals.kept),
        refusals.all_kept,
        reader.counts,
        total - rejected - len(items),
        reader.truncated,
    )


def size_of(part: bytes | msgspec.Raw) -> int:
    """Return how many bytes a part was sent in."""
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

    def explain(self, what: str, total: int) -> str:
        """Say in a bounded number of words (O11) what was refused of so many; empty where nothing was."""
        if not self._reasons:
            return ""
        told = [f"{count} × {reason[:_REASON_LENGTH]}" for reason, count in self._reasons.most_common(_REASONS)]
        more = f"; and {len(self._reasons) - _REASONS} other reasons" if len(self._reasons) > _REASONS else ""
        return f"{self.rejected} of {total} {what} were rejected: {'; '.join(told)}{more}"


def bad_id(field: str, raw: bytes, size: int) -> str:
    """Say what is wrong with an id that must have ``size`` bytes and not be all zeros."""
    if len(raw) == size:
        return f"{field} is all zeros"
    return f"{field} must be {size} bytes ({2 * size} hex digits in JSON), not {len(raw)}"
