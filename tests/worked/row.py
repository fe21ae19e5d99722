"""Row: one worked value of the scoring specification, and how to ask the product for it."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Worked(NamedTuple):
    """A line of the table: ``of`` is what of the product is called, ``by_hand`` what it must say."""

    section: str
    words: str
    of: str
    found: Callable[[], Any]
    by_hand: Any
