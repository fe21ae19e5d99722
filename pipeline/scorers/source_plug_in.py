"""SourcePlugIn: a record source that somebody else wrote, under the entry-point group ``tracegrade.records`` (docs/records.md)."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from pipeline.model.settings import Settings
from pipeline.scorers.installed import Group
from pipeline.scorers.plug_in import NoSettings

RECORDS: Final = Group("tracegrade.records", "record source", "read(key, settings)")
Read = Callable[[Mapping[str, Any], Any], Any | Awaitable[Any]]
"""(key, settings) → what there is, as JSON values and decimals; None where there is no such record. Whatever it raises is a read that
failed; :class:`~pipeline.errors.TemporaryError` is one that is worth another try."""


class SourcePlugIn(msgspec.Struct, frozen=True):
    """A record source in Python. ``read`` may be a coroutine function; one that is not is called in a thread of its own."""

    name: str
    """As the entry point is called, and as ``use`` names it in a configuration."""
    about: str
    """One sentence: what it reads."""
    read: Read
    settings: type[Settings] = NoSettings
    """What can be set; what is secret in it is a ``SecretStr``, which no contract and no message shows."""
    parameters: tuple[str, ...] = ()
    """What a key consists of."""
