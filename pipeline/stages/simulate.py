"""Simulate: how often a gate would fire on traffic that is said, and how soon on a change; with the very state machine that runs.

Runs come as a Poisson process, each fails by itself, and each is judged with one probability. Chance is an argument: numbers from [0, 1).
"""

from collections.abc import Callable
from itertools import accumulate
from math import exp
from typing import Final

import msgspec

from pipeline.model.run import Cohort
from pipeline.model.time import HOUR, MINUTE
from pipeline.model.window import GateState, GateStatus, Series, Sums, Window
from pipeline.stages.gate import SeriesGate, lengths_of
from pipeline.stages.gate_windows import read_window
from pipeline.stages.window import window

Chance = Callable[[], float]
Failing = Callable[[int], float]
"""Minute → the true share of runs that fail in it."""
_FIRST: Final = 10_000 * 7 * 24 * 60
"""Minute of the epoch at which the simulated traffic begins: windows of every length end there."""


class Traffic(msgspec.Struct, frozen=True):
    """How many runs an agent has, and how many of them are judged."""

    runs_per_hour: float
    judged: float = 1.0
    """Share of the runs, above 0 and at most 1."""


class Incident(msgspec.Struct, frozen=True):
    """From which minute to which a gate fired; minutes from the beginning. ``until`` is None where it still fires."""

    since: int
    until: int | None = None


def incidents(gate: SeriesGate, traffic: Traffic, failing: Failing, minutes: int, chance: Chance) -> list[Incident]:
    """Play so many minutes of traffic to a gate and return its incidents, by the ends of the windows that it read."""
    told = _Minutes.drawn(traffic, failing, minutes, chance)
    series = Series("", Cohort("", "", ""), gate.dimension, "", "")
    state = GateState("", gate.name, series.cohort)
    found: list[Incident] = []
    step = gate.stride // MINUTE
    for end in range(gate.window // MINUTE, minutes + 1, step):
        ending = {length: told.window(series, end, length) for length in lengths_of([gate]) if end * MINUTE >= length}
        was = state.status
        state, _ = read_window(gate, state, ending[gate.window], 0, ending.get)
        if was is GateStatus.OK and state.status is GateStatus.FIRING:
            found.append(Incident(end))
        elif was is GateStatus.FIRING and state.status is GateStatus.OK:
            found[-1] = Incident(found[-1].since, end)
    return found


class _Minutes(msgspec.Struct, frozen=True):
    """How many runs were judged, and how many of these failed, before each minute."""

    judged: list[int]
    failed: list[int]
    weight: float

    @classmethod
    def drawn(cls, traffic: Traffic, failing: Failing, minutes: int, chance: Chance) -> "_Minutes":
        per_minute = traffic.runs_per_hour * traffic.judged * MINUTE / HOUR
        judged = [_poisson(per_minute, chance) for _ in range(minutes)]
        failed = [sum(chance() < failing(minute) for _ in range(n)) for minute, n in enumerate(judged)]
        return cls(list(accumulate(judged, initial=0)), list(accumulate(failed, initial=0)), 1 / traffic.judged)

    def window(self, series: Series, end: int, length: int) -> Window:
        """Return what is published of a series for the window that ends there."""
        start, w = end - length // MINUTE, self.weight
        n, failed = self.judged[end] - self.judged[start], self.failed[end] - self.failed[start]
        passed = n - failed
        # The runs that were not judged count in nothing: their weight is on the others.
        sums = Sums(n=n, decided=n, passed=passed, w=n * w, w2=n * w * w, wp=passed * w, wy=passed * w, wy2=passed * w)
        return window(series, (_FIRST + start) * MINUTE, length, sums)


def _poisson(mean: float, chance: Chance) -> int:
    """Draw how many events a minute has, by multiplying until the product is too small; parts of at most 500, whose e⁻ᵐ is a number."""
    events, left = 0, mean
    while left > 0:
        part = min(left, 500.0)
        left -= part
        least, product = exp(-part), chance()
        while product > least:
            events += 1
            product *= chance()
    return events
