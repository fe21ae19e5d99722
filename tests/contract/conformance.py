"""The table of what the conformance tests asked and were answered."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TypeAlias

from unit.otlp.transports import TRANSPORTS

Told: TypeAlias = Callable[[str, str, str, str], None]
"""Takes down a rule, a case, where it was asked, and the answer."""


class Table:
    """Rows by rule and case; where the answers are the same they share a line."""

    def __init__(self) -> None:
        self._rows: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)

    def tell(self, rule: str, case: str, where: str, answer: str) -> None:
        """Take a row."""
        if where not in self._rows[rule, case, answer]:
            self._rows[rule, case, answer].append(where)

    def lines(self) -> Iterator[str]:
        """Yield the table as it reads in a terminal."""
        for (rule, case, answer), where in sorted(self._rows.items(), key=_place):
            asked = f"all {len(where)}" if set(where) == set(TRANSPORTS) else ", ".join(where)
            yield f"{rule:5}{case:56.56}{answer:36.36}{asked}"


def _place(row: tuple[tuple[str, str, str], list[str]]) -> tuple[str, int, str]:
    rule, case, _ = row[0]
    return rule[0], int(rule[1:]), case
