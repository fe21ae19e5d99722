"""What a bridge makes of a foreign record: spans, and of what cannot be read the bytes and the reason."""

from collections import Counter
from typing import Final, Literal, TypeAlias

import msgspec

from collectors.otlp.content import decode
from collectors.otlp.decoding import Refused
from collectors.otlp.encode import Part
from collectors.otlp.passing import PASSED_ON
from collectors.otlp.signal import Encoding
from collectors.redaction.redactor import Redactor
from collectors.redaction.walk import Counts
from pipeline.model.time import DAY

OLDEST: Final = 400 * DAY
"""A record's time that is further back than this is no time of writing."""
Named: TypeAlias = Literal["auto", "otlp_proto", "otlp_json"]
_ENCODINGS: Final[dict[Named, Encoding | None]] = {
    "auto": None,
    "otlp_proto": Encoding.PROTOBUF,
    "otlp_json": Encoding.JSON,
}


class ForeignRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of a topic that others write, as it was read."""

    topic: str
    partition: int
    offset: int
    timestamp_ns: int
    """When it was appended, or written, as the topic has it; 0 where it does not say."""
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()

    @property
    def origin(self) -> str:
        """Where it lies, as people write it."""
        return f"{self.topic}[{self.partition}]@{self.offset}"

    @property
    def size(self) -> int:
        """Bytes that it takes in memory, roughly."""
        return len(self.value or b"") + len(self.key or b"") + 512


class Carried(msgspec.Struct, frozen=True):
    """What a record comes to."""

    spans: tuple[Part, ...] = ()
    rejected: int = 0
    """Spans that were refused one by one."""
    refused: tuple[Refused, ...] = ()
    redacted: Counts = msgspec.field(default_factory=Counter)
    truncated: int = 0
    """How many of the spans are not whole."""

    @property
    def bad(self) -> bool:
        """Whether nothing of it could be read that was meant to be."""
        return bool(self.refused) and not self.spans


def received_ns(record: ForeignRecord, now_ns: int) -> int:
    """Return when the spans of a record were received: when it came to the broker, or was sent there.

    Not when it is read: a record that is read again would have been received again, and a backlog would be of today. Nobody's clock makes
    it later than ``now_ns``, and a time that cannot be one is not taken.
    """
    return now_ns if record.timestamp_ns < now_ns - OLDEST else min(record.timestamp_ns, now_ns)


def read(record: ForeignRecord, project: str, encoding: Named, now_ns: int, redactor: Redactor | None = None) -> Carried:
    """Return what can be read of a record, redacted where there is a redactor; what of it cannot be does not cost the rest.

    Raises:
        PermanentError: nothing of it can be read.
    """
    decoded = decode(record.value, PASSED_ON, project, received_ns(record, now_ns), _ENCODINGS[encoding], redactor)
    # Where more was refused than is kept one by one, the whole record has all of it.
    refused = decoded.refused if decoded.all_kept else (Refused(decoded.message, record.value or b""),)
    return Carried(decoded.items, decoded.rejected, refused, decoded.redacted, decoded.truncated)
