"""What every part that a user configures has in common: unknown keys are refused, durations read as ``10s`` or ``5m``."""

import re
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict

from pipeline.model.time import DAY, HOUR, MINUTE, SECOND

_UNITS: Final = {"ms": SECOND // 1000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}


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
    return int(match[1]) * _UNITS[match[2]]


Duration = Annotated[int, BeforeValidator(duration)]
"""Nanoseconds; written as ``10s``, ``5m``, ``24h``."""


class Settings(BaseModel):
    """Base of every settings class. It sits beside what it configures; ``pipeline.config`` only composes."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
