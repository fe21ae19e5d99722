"""Records: nouns into the bytes that travel on a topic, and back. No broker is needed to read this module, or to run it.

A record is of one project, one partition and one kind. Headers say ``kind``, ``project``, ``version`` and, for spans, ``received_at``
in ns: the least of theirs. Spans are OTLP ``TracesData`` with a field of ours, that says when each of them was received; releases that
do not know it read the header alone. Every other kind is a JSON list.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from collectors.otlp import protobuf
from collectors.otlp.encode import Part, TracesData, parts
from pipeline.errors import PermanentError
from pipeline.model.evidence import Evidence
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback, JudgeRequest, Judgment
from pipeline.model.span import Span
from pipeline.model.topology import DEAD_LETTERS, JUDGE, LARGEST_BODY, TOUCHED, TRACES, TRIPS, DeadLetter, Topic
from pipeline.model.window import Touched, Trip

VERSION: Final = b"1"
READABLE: Final = frozenset({b"1", b"2"})
"""The version that is written and the next one: a collector may be newer than the worker that reads from it, by one."""
MAX_RECORD: Final = 256 * 1024
"""Bytes of a record's value, unless one thing alone has more."""
MAX_SPANS: Final = 200
"""Spans of a record."""
LARGEST_RECORD: Final = 8 * 1024 * 1024
"""Bytes that a topic takes as one record (its ``max.message.bytes``): room for one thing that is larger than :data:`MAX_RECORD`."""
_FRAME: Final = 1024
"""Bytes that Kafka adds to value and headers, at most."""
_MAX_TIME: Final = 2**63 - 1

Headers: TypeAlias = tuple[tuple[str, bytes], ...]


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """A record to be sent."""

    topic: str
    partition: int
    value: bytes
    headers: Headers


class Incoming(msgspec.Struct, frozen=True, gc=False):
    """A record as it was read. ``timestamp_ns`` is when the broker took it."""

    topic: str
    partition: int
    offset: int
    timestamp_ns: int
    value: bytes
    headers: Headers


class Read(msgspec.Struct, frozen=True):
    """What a record says. ``refused`` tells what of it could not be read; empty where all of it was."""

    records: list[Any]
    refused: str = ""


_SPANS: Final = "spans"
_KINDS: Final[dict[str, dict[str, type]]] = {
    TRACES.name: {_SPANS: Span, "log_record": LogRecord, "judgment": Judgment, "feedback": Feedback, "evidence": Evidence},
    JUDGE.name: {"judge_request": JudgeRequest},
    TOUCHED.name: {"touched": Touched},
    TRIPS.name: {"trip": Trip},
    DEAD_LETTERS.name: {"dead_letter": DeadLetter},
}
"""What travels on which topic."""
_KIND_OF: Final = {(topic, noun): kind for topic, kinds in _KINDS.items() for kind, noun in kinds.items()}
_DECODERS: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    kind: msgspec.json.Decoder(noun) for kinds in _KINDS.values() for kind, noun in kinds.items() if kind != _SPANS
}
_list_of: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_json: Final = msgspec.json.Encoder().encode


class SpansRecord:
    """A record of spans in the making, of one project and one partition."""

    def __init__(self, project: str, partition: int) -> None:
        self.project: Final = project
        self.partition: Final = partition
        self._data = TracesData()
        self._received_ns = _MAX_TIME

    @property
    def size(self) -> int:
        """Bytes of its value, at most."""
        return self._data.size

    @property
    def spans(self) -> int:
        """How many spans it has."""
        return self._data.spans

    @property
    def full(self) -> bool:
        """Whether no further span can go with these."""
        return self._data.spans >= MAX_SPANS or self._data.size >= MAX_RECORD

    def has_room(self, some: Sequence[Part]) -> bool:
        """Whether these can go with what is there."""
        return self._data.spans + len(some) <= MAX_SPANS and self._data.size + self._data.cost(some) <= MAX_RECORD

    def add(self, part: Part) -> None:
        """Add a span; the first is taken whatever its size."""
        self._data.add(part)
        self._received_ns = min(self._received_ns, part.received_ns)

    def outgoing(self) -> Outgoing:
        """Return the record.

        Raises:
            PermanentError: it is one span that is larger than :data:`LARGEST_RECORD`, or its project is not Unicode.
        """
        received_at = ("received_at", b"%d" % self._received_ns)
        return _outgoing(TRACES.name, self.partition, _SPANS, self.project, self._data.to_bytes(), received_at)


def encode(topic: Topic, records: Sequence[Any], partitions: int) -> list[Outgoing]:
    """Return the records in which these nouns travel: by project, partition and kind, each in the order given.

    Raises:
        PermanentError: one of them does not travel on this topic, cannot be written, or is larger alone than
            :data:`LARGEST_RECORD`. (Of a dead letter that is larger, the body is cut.)
    """
    lanes: dict[tuple[str, int, str], list[Any]] = {}
    for record in records:
        kind = _KIND_OF.get((topic.name, type(record)))
        if kind is None:
            raise PermanentError(f"a {type(record).__name__} does not travel on {topic.name}")
        lanes.setdefault((record.project, partition_of(topic, record, partitions), kind), []).append(record)
    found: list[Outgoing] = []
    for (project, partition, kind), some in lanes.items():
        if kind == _SPANS:
            found += [record.outgoing() for record in _spans_records(project, partition, some)]
        else:
            found += [_outgoing(topic.name, partition, kind, project, value) for value in _lists(kind, some)]
    return found


def partition_of(topic: Topic, record: Any, partitions: int) -> int:
    """Return the partition of a record.

    Raises:
        PermanentError: its project or its id is not Unicode.
    """
    try:
        return topic.partition_of(record, partitions)
    except UnicodeEncodeError as error:
        raise PermanentError(f"a {type(record).__name__} has an id that is not Unicode: {error}") from error


def span_parts(spans: Sequence[Span]) -> list[Part]:
    """Serialise each span; in order.

    Raises:
        PermanentError: one of them is nothing that OTLP can say, or is larger alone than :data:`LARGEST_RECORD`.
    """
    found = parts(spans)
    for span, part in zip(spans, found, strict=True):
        if len(part.span) + len(part.resource) + len(part.scope) > LARGEST_RECORD - 2 * _FRAME:
            raise PermanentError(
                f"span {span.span_id!a} of trace {span.trace_id!a} is {len(part.span)} bytes with a resource of {len(part.resource)}:"
                f" one span can have {LARGEST_RECORD}"
            )
    return found


def _spans_records(project: str, partition: int, spans: Sequence[Span]) -> Iterator[SpansRecord]:
    record = SpansRecord(project, partition)
    for part in span_parts(spans):
        if record.size and not record.has_room((part,)):
            yield record
            record = SpansRecord(project, partition)
        record.add(part)
    yield record


def _lists(kind: str, nouns: Iterable[Any]) -> Iterator[bytes]:
    """Yield JSON lists of the nouns, none larger than :data:`MAX_RECORD` unless it has one noun alone."""
    items: list[bytes] = []
    size = 2
    for noun in nouns:
        try:
            item = _json(_cut(noun) if isinstance(noun, DeadLetter) else noun)
        except (UnicodeEncodeError, OverflowError, TypeError) as error:
            raise PermanentError(f"a {kind} cannot be written as JSON: {error}") from error
        if items and size + len(item) + 1 > MAX_RECORD:
            yield b"[" + b",".join(items) + b"]"
            items, size = [], 2
        items.append(item)
        size += len(item) + 1
    yield b"[" + b",".join(items) + b"]"


def _cut(letter: DeadLetter) -> DeadLetter:
    """Return the letter, cut to what can be sent: one that could not be would stop what it is meant to let pass."""
    if len(letter.body) <= LARGEST_BODY:
        return letter
    reason = f"{letter.reason} (of {len(letter.body)} bytes the first {LARGEST_BODY} are kept)"
    return msgspec.structs.replace(letter, reason=reason, body=letter.body[:LARGEST_BODY])


def _outgoing(topic: str, partition: int, kind: str, project: str, value: bytes, *more: tuple[str, bytes]) -> Outgoing:
    try:
        whose = project.encode()
    except UnicodeEncodeError as error:
        raise PermanentError(f"the project of a {kind} record is not Unicode: {error}") from error
    size = len(value) + len(whose) + _FRAME
    if size > LARGEST_RECORD:
        raise PermanentError(f"one {kind} record alone is {size} bytes, and {topic} takes records of at most {LARGEST_RECORD}")
    headers = (("kind", kind.encode()), ("project", whose), ("version", VERSION), *more)
    return Outgoing(topic, partition, value, headers)


def decode(incoming: Incoming) -> Read:
    """Return the nouns of a record; what of it cannot be read does not cost the rest.

    Raises:
        PermanentError: nothing of it can be read, or it does not belong on this topic.
    """
    headers = dict(incoming.headers)
    version = headers.get("version")
    if version not in READABLE:
        known = " and ".join(sorted(one.decode() for one in READABLE))
        raise PermanentError(f"the record is of version {_shown(version)}; this release reads versions {known}")
    kind, project = _text(headers, "kind"), _text(headers, "project")
    if kind not in _KINDS.get(incoming.topic, {}):
        raise PermanentError(f"a record of kind {kind!a} does not belong on {incoming.topic}")
    if kind == _SPANS:
        decoded = protobuf.decode(incoming.value, project, _received_ns(headers, incoming), own=True)
        read = Read(list(decoded.spans), decoded.message)
    else:
        read = _read_list(kind, project, incoming.value)
    if read.refused and not read.records:
        raise PermanentError(read.refused)
    return read


def _read_list(kind: str, project: str, value: bytes) -> Read:
    try:
        items = _list_of(value)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise PermanentError(f"the record is no JSON list: {error}") from error
    found: list[Any] = []
    first = ""
    for item in items:
        try:
            noun = _DECODERS[kind].decode(item)
            if noun.project != project:
                raise PermanentError(f"it is of project {noun.project!a} in a record of {project!a}")  # noqa: TRY301 - refused like the others
            found.append(noun)
        except (msgspec.MsgspecError, ValueError, RecursionError, PermanentError) as error:
            first = first or str(error)
    refused = len(items) - len(found)
    return Read(found, f"{refused} of {len(items)} × {kind} cannot be read: {first}" if refused else "")


def _received_ns(headers: dict[str, bytes], incoming: Incoming) -> int:
    """Return when the spans were received of which the record does not say it one by one: when the broker took them, without a header too."""
    said = headers.get("received_at")
    if said is None:
        return incoming.timestamp_ns
    if not said.isdigit() or len(said) > len(str(_MAX_TIME)) or int(said) > _MAX_TIME:
        raise PermanentError(f"the header received_at is {_shown(said)}, and not a number of nanoseconds since 1970")
    return int(said)


def _text(headers: dict[str, bytes], name: str) -> str:
    try:
        return headers[name].decode()
    except KeyError as error:
        raise PermanentError(f"the record has no header {name}") from error
    except UnicodeDecodeError as error:
        raise PermanentError(f"the header {name} is not UTF-8: {error}") from error


def _shown(raw: bytes | None) -> str:
    return "unknown" if raw is None else ascii(raw[:40].decode("utf-8", "replace"))
