"""Facts that senders hand in beside spans, on the topic of their traces: log records and feedback."""

from collections.abc import Sequence

from pipeline.errors import ConfigurationError, TemporaryError
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback
from pipeline.model.topology import TRACES, Publish

_RETRY_AFTER_S = 1.0


class FactPublisher:
    """Where a collector stores them: each request is answered when the brokers have acknowledged all that it holds."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish

    async def store(self, facts: Sequence[LogRecord | Feedback]) -> None:
        """Return when the brokers have all of these.

        Raises:
            TemporaryError: some of them are not acknowledged; sending all of them again is safe.
            PermanentError: one of them can never be sent; none is.
        """
        try:
            await self._publish(TRACES, facts)
        except ConfigurationError as error:  # the topic went away: the sender keeps what it has until somebody makes it again
            raise TemporaryError(str(error), _RETRY_AFTER_S) from error
