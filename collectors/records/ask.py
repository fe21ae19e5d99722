"""Ask: how a record source is asked, whatever it is."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

Ask: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""(key) → what there is, as JSON values with decimals; None where there is no such record.

Raises TemporaryError where asking again may help, PermanentError where it cannot. Their messages hold nothing that is secret.
"""
LARGEST: Final = 64 * 1024
"""Bytes of an answer; more is no answer."""
