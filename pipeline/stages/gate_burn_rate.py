"""Burn-rate gates: more runs fail than the budget allows, beyond doubt over a long window and still over a short one.

The rule is F of judging, section 5, the one of those tried there that an agent within its budget does not set off every other day;
with a bound by likelihood in the place of Wilson's, so that this holds for small budgets too.
"""

from pipeline.model.time import MINUTE
from pipeline.model.window import Window
from pipeline.stages.gate import BurnPair, BurnRateGate
from pipeline.stages.gate_reading import Beside, Reading, below, missing
from pipeline.stages.window import rate_of, slide_of
from pipeline.stats import likelihood


def reading(gate: BurnRateGate, window: Window, beside: Beside) -> Reading:
    """Return what the windows say that end with the shortest long one.

    Where an agent has too few runs for that one, the longer ones speak, at their own ends.
    """
    ending = [pair for pair in gate.pairs if window.end_ns % slide_of(pair.long) == 0]
    longs = {pair.long: window if pair.long == window.length_ns else beside(pair.long) for pair in ending}
    read = {length: long for length, long in longs.items() if long is not None and not missing(gate, long)}
    failing = {length: 1 - long.rate for length, long in read.items() if long.rate is not None}
    if not failing:
        return Reading(missing=missing(gate, window) or "no data", interrupts=False)
    shortest, clear_at = min(failing), gate.budget * gate.clear_at
    measured, besides = f"{failing[shortest]:.4g} of the runs fail over {_minutes(shortest)}", rate_of(read[shortest]).besides
    said = Reading(
        failing[shortest],
        holds=f"{measured}, more than {clear_at:g}; {besides}" if below(clear_at, failing[shortest]) else "",
        clear_at=clear_at,
        recovered=f"at most {clear_at:g} of the runs fail in {gate.clear_windows} windows; {measured}; {besides}",
    )
    for pair in ending:
        short = beside(pair.short)
        if pair.long in failing and short is not None and short.rate is not None:
            why = _burning(gate, pair, read[pair.long], failing[pair.long], 1 - short.rate)
            if why:
                return said._replace(value=failing[pair.long], raises=why, raise_at=pair.burn * gate.budget)
    return said


def _burning(gate: BurnRateGate, pair: BurnPair, long: Window, failing: float, lately: float) -> str:
    """Say how a pair of windows burns too fast; empty where it does not."""
    threshold = pair.burn * gate.budget
    if likelihood.standard_errors(failing, long.n_effective, threshold) < gate.z or not below(threshold, lately):
        return ""
    surely = likelihood.least(failing, long.n_effective, gate.z)
    return (
        f"{failing:.4g} of the runs fail over {_minutes(pair.long)}, at least {surely:.4g} by {gate.z:g} standard errors, and "
        f"{lately:.4g} over {_minutes(pair.short)}: more than {threshold:g}, {pair.burn:g} times the budget; {rate_of(long).besides}"
    )


def _minutes(length_ns: int) -> str:
    return f"{length_ns // MINUTE} min"
