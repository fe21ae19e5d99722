"""What ``tracegrade gate`` does."""
# ruff: noqa: PLC0415 - a command imports what it needs

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pipeline.apps.commands import print_json, print_line
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from pipeline.stages.gate import SeriesGate
    from pipeline.stages.simulate import Traffic


def simulate(
    config: Path | None,
    name: str,
    runs_per_hour: float,
    judged: float,
    failing: float | None,
    months: int,
    seed: int,
    *,
    json: bool,
) -> int:
    """Play months of calm and some changes to each gate that reads windows, and print what it says as soon as it is known."""
    from pipeline.apps.gate_simulation import gates_of
    from pipeline.config.load import load
    from pipeline.stages.simulate import Traffic

    if runs_per_hour <= 0 or not 0 < judged <= 1 or months < 1 or (failing is not None and not 0 <= failing <= 1):
        raise ConfigurationError(
            "write --runs-per-hour above 0, --judged above 0 and at most 1, --failing from 0 to 1, --months from 1 on"
        )
    traffic, told = Traffic(runs_per_hour, judged), []
    for gate in gates_of(load(config), name):
        for one in _played(gate, traffic, failing, months, seed):
            told.append({"gate": gate.name, **one})
            if not json:
                print_line(_line(told[-1]))
    if json:
        print_json(told)
    return 0


def _played(gate: "SeriesGate", traffic: "Traffic", failing: float | None, months: int, seed: int) -> "Iterator[dict[str, Any]]":
    from pipeline.apps.gate_simulation import WITHIN, allowed, calm, changes

    share = WITHIN * allowed(gate) if failing is None else failing
    yield msgspec.to_builtins(calm(gate, traffic, share, months, seed))
    for change in changes(gate, traffic, seed):
        yield msgspec.to_builtins(change)


def _line(one: dict[str, Any]) -> str:
    share = f"{one['gate']}: {one['failing']:.3g} of the runs fail"
    if "months" in one:
        return (
            f"{share}, for {one['months']} months of 30 days: {one['false_alarms']} incidents, {one['per_month']:.2g} a month, "
            f"{one['hours_firing']:.2g} h of a month"
        )
    seen = f"{one['seen']} of {one['changes']} seen within a day"
    middle = "no median" if one["median_hours"] is None else f"the median after {one['median_hours']:.2g} h"
    return f"{share}, from one minute to the next: {seen}, {middle}"
