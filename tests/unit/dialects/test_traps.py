"""Every trap of the dialects reference, section 14, in all its variants, on assembled runs; with ``-s`` the table is printed."""

import pytest
from recordings import runs_of
from traps import Trap, of_calls, of_runs, of_values

TRAPS = [*of_values.TRAPS, *of_calls.TRAPS, *of_runs.TRAPS]


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: f"{trap.number} {trap.variant}, {trap.stands}")
def test_trap(trap: Trap) -> None:
    found = trap.read(runs_of(trap.sent()))
    print(f"\n{trap}", end="  ")  # noqa: T201 - the table, with -s
    assert found == trap.wanted


def test_no_trap_is_left_out() -> None:
    assert sorted({trap.number for trap in TRAPS}) == list(range(1, 17))
