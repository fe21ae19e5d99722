"""Every worked value of the scoring specification beside what the product makes of it: ``make worked``.

What is expected was worked out by hand, from the specification's words; nothing here was copied from what the product said. Rubrics are
those that ship.
"""

import sys
from typing import Any

from worked.evaluations import quality_rows, rate_rows, window_rows
from worked.row import Worked
from worked.rubrics import agent_output_rows, criteria_rows, risk_rows, support_rows, unknown_rows
from worked.runs import cost_rows, trajectory_rows


def table() -> list[Worked]:
    """Every row, in the specification's order."""
    return [
        *support_rows(),
        *risk_rows(),
        *agent_output_rows(),
        *criteria_rows(),
        *unknown_rows(),
        *trajectory_rows(),
        *cost_rows(),
        *quality_rows(),
        *rate_rows(),
        *window_rows(),
    ]


def spoken(value: Any) -> str:
    """A value in a cell."""
    if isinstance(value, tuple | list):
        return ", ".join(map(spoken, value)) or "none"
    return "absent" if value is None else str(value)


def main() -> int:
    """Print the table; 1 where a value is not the one worked out by hand."""
    wrong = 0
    print(f"{'':3} {'words':<58} {'called':<26} {'by hand':<40} found")  # noqa: T201
    for row in table():
        found = row.found()
        wrong += found != row.by_hand
        mark = "OK" if found == row.by_hand else f"WRONG: {spoken(found)}"
        print(f"{row.section:3} {row.words:<58} {row.of:<26} {spoken(row.by_hand):<40} {mark}")  # noqa: T201
    print(f"{len(table()) - wrong} of {len(table())} OK")  # noqa: T201
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
