"""Reading: what a final window says to a gate. The kinds of gates that read windows differ in this alone."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from pipeline.model.window import Window
from pipeline.stages.gate import WindowGate

_DIGITS: Final = 9
"""Measures are compared after rounding to this many digits: the last bits of a sum depend on the order of adding."""

Beside = Callable[[int], Window | None]
"""Length in ns → the window of that length with the same end, under the same contract; None where there is none."""


class Reading(NamedTuple):
    """What one window says. Where something is missing it is no measurement, and fires and clears nothing."""

    value: float | None = None
    raises: str = ""
    """Why a gate fires on it; empty where it does not."""
    raise_at: float | None = None
    holds: str = ""
    """Why an open incident is not over; empty where the window counts as recovered."""
    clear_at: float | None = None
    recovered: str = ""
    """What is said where this window is the last of those that clear an incident."""
    missing: str = ""
    interrupts: bool = True
    """Whether what is missing breaks a row of recovered windows."""
    memory: tuple[float, ...] = ()
    """What the gate has to know at the next window besides."""


def missing(gate: WindowGate, window: Window) -> str:
    """Say why a window is no measurement; empty where it is one."""
    if not window.sums.n:
        return "no data"
    if window.coverage is None or below(window.coverage, gate.min_coverage):
        return f"coverage {window.coverage or 0:.4g}, needs {gate.min_coverage:g}"
    if window.sums.decided < gate.min_n:
        return f"{window.sums.decided} decided, needs {gate.min_n}"
    if below(window.n_effective, gate.min_n_effective):
        return f"effective n {window.n_effective:.4g}, needs {gate.min_n_effective:g}"
    return ""


def below(value: float, threshold: float) -> bool:
    """Whether a measure is less than a threshold by more than rounding."""
    return round(value, _DIGITS) < round(threshold, _DIGITS)


def beside(windows: Mapping[tuple[int, int, str], Window], read: Window) -> Beside:
    """Return how to find windows by (length, end, contract) that end where the read one does."""
    return lambda length: windows.get((length, read.end_ns, read.series.contract))
