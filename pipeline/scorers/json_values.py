"""JSON in texts of a run, read exactly: decimals, no NaN, no depth that breaks the reader."""

import json
import re
from decimal import Decimal
from typing import Any, Final

_FENCE: Final = re.compile(r"\s*```[a-zA-Z]*\s*\n(.*)\n\s*```\s*", re.DOTALL)


class Absent:
    """There is no such value; ``None`` is JSON's ``null``."""


ABSENT: Final = Absent()


def parsed(text: str) -> Any:
    """Return the value of a JSON text; numbers with a point are decimals.

    Raises:
        ValueError: it is not JSON, or nested deeper than can be read.
    """
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_refused)
    except RecursionError:
        raise ValueError("nested too deep") from None


def unfenced(text: str) -> str:
    """Return what stands in a Markdown fence, if the whole text is one; else the text."""
    fence = _FENCE.fullmatch(text)
    return text if fence is None else fence[1]


def at(value: Any, path: str) -> Any:
    """Return what stands at a dotted path, ``items.0.price``; :data:`ABSENT` where nothing does. A key with dots in it comes first."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return ABSENT
    return value


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON value")
