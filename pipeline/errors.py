"""Errors say who acts: nobody (dead letter), time (retry), or the person who configured."""


class PermanentError(Exception):
    """The same input would fail again: it goes to the dead letters with this reason."""


class TemporaryError(Exception):
    """It may work later. ``retry_after`` is in seconds, None where nobody said."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ConfigurationError(Exception):
    """A person can fix it. The message says what to write instead; it is shown without a traceback."""
