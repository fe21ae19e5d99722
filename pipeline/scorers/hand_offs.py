"""hand_offs: how often control of a run went from one of its agents to another (spec section 4.2)."""

from typing import Final

from pipeline.model.run import Run
from pipeline.scorers.check import Check, Finding, check_of, measured

HAND_OFFS: Final = "hand_offs"
_LISTED: Final = 20


def hand_offs_check() -> Check:
    """Return the check."""
    return check_of(HAND_OFFS, {"rule": "hand-offs, counted", "version": 1}, hand_offs)


def hand_offs(run: Run) -> Finding | None:
    """Count the hand-offs; any number passes. Absent in a run of one agent."""
    if not run.agents:
        return None
    listed = [f"{one.source} → {one.target}" for one in run.hand_offs[:_LISTED]]
    more = len(run.hand_offs) - len(listed)
    evidence = ", ".join([*listed, *([f"{more} more"] if more else [])])
    return measured(float(len(run.hand_offs)), holds=True, reason="only counted", evidence=evidence)
