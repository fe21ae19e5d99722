"""Redaction of log records: everything in them that somebody else wrote."""

from collections import Counter

import msgspec

from collectors.redaction.redactor import Counts
from collectors.redaction.spans import RequestRedaction, flagged_attributes, texts_of
from pipeline.model.log_record import LogRecord


class LogRedaction(RequestRedaction):
    """Redacts the log records of one request."""

    def record(self, record: LogRecord) -> LogRecord:
        """Return a record of the last origin, redacted, not sealed; the same object where there was nothing to redact."""
        if self._redactor is None:
            return record
        inside: Counts = Counter(self.of_origin)
        if self._redactor.suspects([record.event_name, *texts_of(record.attributes), *texts_of({"body": record.body})]):
            found: Counts = Counter()
            record = msgspec.structs.replace(
                record,
                event_name=self._redactor.text(record.event_name, found),
                body=self._redactor.value(record.body, found),
                attributes=self._redactor.attributes(record.attributes, found),
            )
            self.counts.update(found)
            inside.update(found)
        return msgspec.structs.replace(record, attributes=flagged_attributes(record.attributes, inside)) if inside else record
