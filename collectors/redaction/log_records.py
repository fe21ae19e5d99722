"""Redaction of log records: everything in them that somebody else wrote."""

from collections import Counter

import msgspec

from collectors.redaction.spans import RequestRedaction, flagged_attributes
from collectors.redaction.texts import texts_in, texts_of
from collectors.redaction.walk import Counts
from pipeline.model.log_record import LogRecord


class LogRedaction(RequestRedaction):
    """Redacts the log records of one request."""

    def record(self, record: LogRecord) -> LogRecord:
        """Return a record of the last origin, redacted, not sealed; the same object where there was nothing to redact."""
        if self._redactor is None:
            return record
        inside: Counts = Counter()
        walk = self._redactor.look([record.event_name, *texts_of(record.attributes), *texts_in(record.body)], inside)
        if walk is not None:
            record = msgspec.structs.replace(
                record,
                event_name=walk.text(record.event_name),
                body=walk.value(record.body),
                attributes=walk.attributes(record.attributes),
            )
            self.counts.update(inside)
        inside.update(self.of_origin)
        return msgspec.structs.replace(record, attributes=flagged_attributes(record.attributes, inside)) if inside else record
