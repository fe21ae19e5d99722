"""What ``tracegrade gate simulate`` does: how often a gate would wake somebody for nothing, and how soon it sees a change."""

from collections.abc import Iterator, Sequence
from math import inf
from random import Random
from statistics import median
from typing import Final

import msgspec

from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.model.time import DAY, HOUR, MINUTE
from pipeline.stages.gate import FloorGate, HardGate, SeriesGate, lengths_of
from pipeline.stages.simulate import Chance, Failing, Incident, Traffic, incidents

MONTH: Final = 30 * DAY // MINUTE
WITHIN: Final = 0.8
"""Of the share of failing runs that a gate allows: where an agent is that keeps its budget, and not by much."""
WORSE: Final = (2, 4, 8)
"""How many times the allowed share fails after the changes that are simulated."""
CHANGES: Final = 40
"""How often each change is played."""


class Calm(msgspec.Struct, frozen=True):
    """What a gate said in months in which nothing happened."""

    failing: float
    months: int
    false_alarms: int
    per_month: float
    hours_firing: float
    """Of a month, on average."""


class Change(msgspec.Struct, frozen=True):
    """How soon a gate saw that more runs fail."""

    failing: float
    seen: int
    """Of ``changes``, those that were seen within a day."""
    changes: int
    median_hours: float | None
    """None where fewer than half were seen."""


def gates_of(settings: TracegradeSettings, name: str) -> Sequence[SeriesGate]:
    """Return the gate of that name, or all that read windows.

    Raises:
        ConfigurationError: none of that name can be simulated.
    """
    able = [gate for gate in settings.gates if not isinstance(gate, HardGate) and not _reads_means(gate)]
    wanted = [gate for gate in able if name in ("", gate.name)]
    if not wanted:
        known = ", ".join(gate.name for gate in able) or "none"
        what = f"no gate {name!r} over the rate of a window" if name else "no gate over the rate of a window"
        raise ConfigurationError(f"there is {what} in the configuration; those that can be simulated: {known}")
    return wanted


def _reads_means(gate: SeriesGate) -> bool:
    return isinstance(gate, FloorGate) and gate.measure == "mean"


def allowed(gate: SeriesGate) -> float:
    """Return the share of failing runs that a gate allows."""
    return 1 - gate.raise_below if isinstance(gate, FloorGate) else gate.budget


def calm(gate: SeriesGate, traffic: Traffic, failing: float, months: int, seed: int) -> Calm:
    """Play months in which the true share of failing runs stays as it is."""
    found = [
        one for month in range(months) for one in incidents(gate, traffic, lambda _: failing, MONTH, _chance(seed, "calm", month))
    ]
    hours = sum((one.until or MONTH) - one.since for one in found) * MINUTE / HOUR
    return Calm(failing, months, len(found), len(found) / months, hours / months)


def changes(gate: SeriesGate, traffic: Traffic, seed: int) -> Iterator[Change]:
    """Play changes from half of what is allowed to more than that, each for a day."""
    at = 2 * max(lengths_of([gate])) // MINUTE
    for times in WORSE:
        failing = min(times * allowed(gate), 1.0)
        true = _from(at, allowed(gate) / 2, failing)
        chances = [_chance(seed, f"change {times}", number) for number in range(CHANGES)]
        delays = [_delay(incidents(gate, traffic, true, at + DAY // MINUTE, chance), at) for chance in chances]
        middle = median(delays)
        yield Change(failing, sum(delay < inf for delay in delays), CHANGES, middle if middle < inf else None)


def _from(at: int, before: float, after: float) -> Failing:
    return lambda minute: after if minute >= at else before


def _chance(seed: int, what: str, number: int) -> Chance:
    return Random(f"{seed} {what} {number}").random  # noqa: S311 - a simulation that comes out the same each time


def _delay(found: Sequence[Incident], at: int) -> float:
    """Return after how many hours a gate fired for a change; one that fired already, or never, has not seen it."""
    after = next((one.since for one in found if one.until is None or one.until > at), at)
    return (after - at) * MINUTE / HOUR if after > at else inf
