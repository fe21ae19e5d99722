"""Floor gates: a measure of one window against two thresholds."""

from pipeline.model.window import Window
from pipeline.stages.gate import FloorGate
from pipeline.stages.gate_reading import Reading, below, missing
from pipeline.stages.window import rate_of


def reading(gate: FloorGate, window: Window) -> Reading:
    """Return what a window says to a floor gate."""
    value = window.rate if gate.measure == "rate" else window.mean
    lacking = missing(gate, window)
    if lacking or value is None:
        return Reading(missing=lacking or "no data")
    measured, besides = f"{gate.measure} {_interval(gate, window, value)}", rate_of(window).besides
    return Reading(
        value,
        raises=f"{measured} is below {gate.raise_below:g}; {besides}" if below(value, gate.raise_below) else "",
        raise_at=gate.raise_below,
        holds=f"{measured} is below {gate.clear_above:g}; {besides}" if below(value, gate.clear_above) else "",
        clear_at=gate.clear_above,
        recovered=(
            f"{gate.measure} at least {gate.clear_above:g} in {gate.clear_windows} windows, {_interval(gate, window, value)} in the "
            f"last; {besides}"
        ),
    )


def _interval(gate: FloorGate, window: Window, value: float) -> str:
    """Say what was measured, never without how much is behind it (scoring, section 1)."""
    low, high = (window.rate_low, window.rate_high) if gate.measure == "rate" else (window.mean_low, window.mean_high)
    return f"{value:.4g}" if low is None or high is None else f"{value:.4g} ({low:.4g} to {high:.4g})"
