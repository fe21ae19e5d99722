"""Drift gates: a rise of the failing share that is too small for any one window, and lasts."""

from math import exp, log

from pipeline.model.window import GateState, GateStatus, Window
from pipeline.stages.gate import DriftGate
from pipeline.stages.gate_reading import Beside, Reading, below, missing
from pipeline.stages.window import rate_of
from pipeline.stats import ecusum


def reading(gate: DriftGate, state: GateState, window: Window, beside: Beside) -> Reading:
    """Return what a window adds to the evidence, or, while the gate fires, whether the long window that ends with it is calm again.

    The detector begins anew with each incident and each contract.
    """
    if state.status is GateStatus.FIRING:
        return _recovery(gate, beside(gate.clear_window))
    if not window.sums.n or window.rate is None:
        return Reading(missing="no data", interrupts=False, memory=state.memory)
    if window.coverage is None or below(window.coverage, gate.min_coverage):
        why = f"coverage {window.coverage or 0:.4g}, needs {gate.min_coverage:g}"
        return Reading(missing=why, interrupts=False, memory=state.memory)
    # An effective number of runs: of unequal weights a window says less than its runs do.
    n, failing = window.n_effective, 1 - window.rate
    memory = ecusum.after(state.memory, gate.budget, n * failing, n)
    evidence = ecusum.logarithm(memory)
    if below(evidence, log(gate.least_evidence)):
        return Reading(failing, memory=memory)
    why = (
        f"more than {gate.budget:g} of the runs have failed for some time: evidence {exp(min(evidence, 700)):.3g}, where chance takes "
        f"{gate.least_evidence:,} windows on average to come to {gate.least_evidence:,}; {failing:.4g} in the last window; "
        f"{rate_of(window).besides}"
    )
    return Reading(failing, raises=why, raise_at=gate.budget)


def _recovery(gate: DriftGate, long: Window | None) -> Reading:
    lacking = "no data" if long is None else missing(gate, long)
    if long is None or long.rate is None or lacking:
        return Reading(missing=lacking or "no data", interrupts=False)
    clear_at, failing = gate.budget * gate.clear_at, 1 - long.rate
    measured = f"{failing:.4g} of the runs fail in the last window; {rate_of(long).besides}"
    return Reading(
        failing,
        holds=f"{failing:.4g} of the runs fail, more than {clear_at:g}; {rate_of(long).besides}"
        if below(clear_at, failing)
        else "",
        clear_at=clear_at,
        recovered=f"at most {clear_at:g} of the runs fail in {gate.clear_windows} windows; {measured}",
    )
