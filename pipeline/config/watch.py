"""Watch: what each gate looks at under a configuration, and why it may hold for ever."""

from collections.abc import Mapping

import msgspec

from pipeline.config.duration import spoken_duration
from pipeline.config.grading import Graders
from pipeline.config.tracegrade import DEFAULT, TracegradeSettings
from pipeline.stages.alert import destinations
from pipeline.stages.gate import BurnRateGate, DriftGate, FloorGate, Gate, HardGate

_FROM_THE_JUDGE = frozenset({"verdict", "composite", "recovery_runs"})
"""Dimensions that rest on the judge wherever a rubric asks it anything."""


class Watch(msgspec.Struct, frozen=True):
    """What one gate looks at. ``holds`` says why runs cannot trip it as things stand, for the entries where that is so."""

    gate: str
    kind: str
    agent: str
    """Empty where it watches every agent."""
    dimensions: dict[str, tuple[str, ...]]
    """By the agent entry that the runs fall under."""
    rule: str
    notifies: tuple[str, ...]
    holds: dict[str, str] = {}


def watch(gate: Gate, settings: TracegradeSettings, graders: Mapping[str, Graders]) -> Watch:
    """Return what a gate looks at in the runs of each agent entry that it concerns."""
    entries = {name: graders[name] for name in entries_of(gate, settings)}
    watched = {name: _dimensions(gate, one) for name, one in entries.items()}
    return Watch(
        gate=gate.name,
        kind=gate.kind,
        agent=gate.agent or "",
        dimensions=watched,
        rule=_rule(gate),
        notifies=destinations(gate, settings.alerts),
        holds={name: why for name, one in entries.items() if (why := _held(gate, settings, one, watched[name]))},
    )


def entries_of(gate: Gate, settings: TracegradeSettings) -> tuple[str, ...]:
    """Return the agent entries whose runs a gate concerns."""
    return (settings.entry_of(gate.agent),) if gate.agent is not None else tuple(settings.entries)


def _dimensions(gate: Gate, graders: Graders) -> tuple[str, ...]:
    if not isinstance(gate, HardGate):
        return tuple({gate.dimension} & graders.dimensions)
    if gate.dimensions is not None:
        return tuple(one for one in gate.dimensions if one in graders.dimensions)
    return tuple(check.name for check in graders.grading.checks if check.gates)


def _rule(gate: Gate) -> str:
    if isinstance(gate, HardGate):
        return f"one failing run trips it; clears after {spoken_duration(gate.quiet)} without one"
    if isinstance(gate, DriftGate):
        return _drift(gate)
    said = _floor(gate) if isinstance(gate, FloorGate) else _burn_rate(gate)
    needs = f"needs {gate.min_n} decided runs, effective n {gate.min_n_effective:g}, coverage {gate.min_coverage:g}"
    return f"{said}; {needs}"


def _floor(gate: FloorGate) -> str:
    measure = "pass rate" if gate.measure == "rate" else "mean"
    return (
        f"{measure} over {spoken_duration(gate.window)}: trips below {gate.raise_below:g}, clears after {gate.clear_windows} windows at "
        f"{gate.clear_above:g} or more"
    )


def _burn_rate(gate: BurnRateGate) -> str:
    pairs = " or ".join(
        f"{pair.burn * gate.budget:g} over {spoken_duration(pair.long)} and {spoken_duration(pair.short)}" for pair in gate.pairs
    )
    return (
        f"share of failing runs, by {gate.z:g} standard errors: trips above {pairs}, clears after {spoken_duration(gate.clear_after)} at "
        f"{gate.budget * gate.clear_at:g} or less"
    )


def _drift(gate: DriftGate) -> str:
    return (
        f"share of failing runs above {gate.budget:g} for long: trips as evidence gathers, for nothing once in "
        f"{spoken_duration(gate.false_alarm_every)} at most on average; clears after {spoken_duration(gate.clear_after)} at "
        f"{gate.budget * gate.clear_at:g} or less over {spoken_duration(gate.clear_window)}; needs coverage {gate.min_coverage:g}"
    )


def _held(gate: Gate, settings: TracegradeSettings, graders: Graders, dimensions: tuple[str, ...]) -> str:
    if not dimensions:
        return "no check gates, so no run can trip it" if isinstance(gate, HardGate) else "no run has this dimension"
    judged = {one.name: one.authority for one in graders.grading.judged}
    if not judged or any(one not in judged and one not in _FROM_THE_JUDGE for one in dimensions):
        return ""
    if isinstance(gate, HardGate) and "verdict" in dimensions:
        return ""  # a failed check fails the verdict, whoever judges
    if not graders.grading.judge_configured:
        return f"there is no judge, so {_undecided(gate, dimensions)}; write judge.base_url and judge.model"
    asked = [one for one in judged if one in dimensions] if set(dimensions) <= set(judged) else list(judged)
    deciding = {one.name for one in graders.grading.every_judged if one.authority in graders.grading.deciding}
    idle = [one for one in asked if one not in deciding]
    if not idle:
        return ""
    states = " or ".join(sorted({judged[one] for one in idle}))
    where = settings.judge.calibration or "judge.calibration"
    return (
        f"the judge is {states} for {', '.join(idle)}: its scores there are shown and decide nothing, so {_undecided(gate, dimensions)}. "
        f"Compare it with people and write the result into {where}, or write judge.uncalibrated: decide"
    )


def _undecided(gate: Gate, dimensions: tuple[str, ...]) -> str:
    """Say what the gate is left with."""
    if not isinstance(gate, HardGate) and gate.dimension in ("verdict", "recovery_runs"):
        return f"a verdict is decided only where a check fails, and a window with less than {gate.min_coverage:.0%} decided is not read"
    return f"{', '.join(dimensions)} cannot trip it"


def entry_name(entry: str) -> str:
    """Return how an agent entry is called in a report."""
    return f"{DEFAULT} (every agent without an entry of its own)" if entry == DEFAULT else entry
