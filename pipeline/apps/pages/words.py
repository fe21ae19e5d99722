"""Words: numbers as people read them. What is not known is a word, never a number."""

from decimal import Decimal
from typing import Final

from pipeline.apps.show import UNKNOWN
from pipeline.model.time import MILLISECOND, MINUTE, SECOND

_FEW: Final = 10
_LEAST: Final = 1e-6


def number(value: float | None) -> str:
    """Return a score: as many digits as it has, six at most."""
    return UNKNOWN if value is None else f"{value:.6g}"


def count(value: int | None) -> str:
    """Return a count with its thousands apart."""
    return UNKNOWN if value is None else f"{value:,}".replace(",", "\u202f")


def cost(dollars: Decimal | float | None) -> str:
    """Return an amount of money: to the cent at least, to a millionth of a dollar at most."""
    if dollars is None:
        return "unknown"
    if 0 < dollars < _LEAST:
        return "less than $0.000001"
    whole, _, parts = f"{dollars:.6f}".partition(".")
    return f"${whole}.{parts.rstrip('0'):0<2}"


def percent(share: float | None) -> str:
    """Return a share, to a tenth of a percent."""
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def duration(ns: int) -> str:
    """Return how long something took; an end before its start tells nothing."""
    if ns < 0:
        return UNKNOWN
    if ns < SECOND:
        return f"{ns / MILLISECOND:.3g} ms" if ns < _FEW * MILLISECOND else f"{ns // MILLISECOND} ms"
    if ns < MINUTE:
        return f"{ns / SECOND:.1f} s"
    minutes, rest = divmod(ns // SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
