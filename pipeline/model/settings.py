"""What every part that a user configures has in common: unknown keys are refused, durations read as ``10s`` or ``5m``."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from pipeline.model.time import DAY, HOUR, MINUTE, SECOND

_UNITS: Final = {"ms": SECOND // 1000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
_LONGEST_D: Final = 36_500
"""A hundred years, in days. Added to any time of this century it is still a time that the store can hold: 64 bits of nanoseconds."""
_DIGITS: Final = 20
"""More of them are never read as a number."""


def duration(text: object) -> int:
    """Read a duration such as ``500ms``, ``10s``, ``5m``, ``24h`` or ``7d`` as nanoseconds.

    Raises:
        ValueError: with what to write instead.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return text
    match = re.fullmatch(r"(\d+)\s*(ms|s|m|h|d)", text.strip()) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r} is not a duration; write a whole number and a unit, such as 10s, 5m, 24h or 7d")
    read = int(match[1]) * _UNITS[match[2]] if len(match[1]) <= _DIGITS else None
    if read is None or read > _LONGEST_D * DAY:
        raise ValueError(f"{text if read is not None else 'this'} is too long; write {_LONGEST_D}d, a hundred years, or less")
    return read


def _printable(project: str) -> str:
    if not project.isprintable() or not project.strip():
        raise ValueError(f"{project!r} is no name that can be read; write letters, digits and signs, such as support-eu")
    return project


Duration = Annotated[int, BeforeValidator(duration)]
"""Nanoseconds; written as ``10s``, ``5m``, ``24h``; a hundred years at most."""
Project = Annotated[str, Field(min_length=1), AfterValidator(_printable)]
"""The name of a project: characters that can be seen, and spaces between them."""


class Settings(BaseModel):
    """Base of every settings class. It sits beside what it configures; ``pipeline.config`` only composes."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
