"""Each law is broken once on purpose: a law that a broken product passes would be no law."""

import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from assembly_law import GRADING, check_accounting, check_any_schedule, facts
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from worlds import run_world, schedules

import pipeline.model.version
from pipeline.model.version import ResultRow, TraceVersion
from pipeline.runtime.owner import TraceOwner

Mutate = Callable[[pytest.MonkeyPatch], None]


def _the_last_version_of_a_span_wins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pipeline.stages.assemble.supersedes", lambda _one, _other: True)


def _nothing_is_retired(patch: pytest.MonkeyPatch) -> None:
    rows = pipeline.model.version.result_rows

    def without(version: TraceVersion) -> tuple[ResultRow, ...]:
        return rows(msgspec.structs.replace(version, retired=()))

    patch.setattr("sinks.memory.result_rows", without)


def _nothing_is_retracted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pipeline.stages.turn._retractions", lambda *_: ())


def _a_judgment_counts_whatever_was_judged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pipeline.stages.grade._is_about", lambda judgment, run, *_: judgment.run_id == run.run_id)


def _nothing_is_read_back(patch: pytest.MonkeyPatch) -> None:
    async def forget(_self: TraceOwner, _now: int) -> int:
        return 0

    patch.setattr(TraceOwner, "recover", forget)


def _closed_traces_are_not_looked_up(patch: pytest.MonkeyPatch) -> None:
    async def trust(_self: TraceOwner, _unknown: Any) -> None:
        return None

    patch.setattr(TraceOwner, "_look_up", trust)


def _the_sample_is_drawn_by_chance(patch: pytest.MonkeyPatch) -> None:
    draws = itertools.cycle([0.1, 0.9, 0.4, 0.6, 0.2])
    patch.setattr("pipeline.model.ids.uniform", lambda *_: next(draws))


def _the_last_receipt_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("pipeline.stages.assemble.min", lambda _kept, new: new, raising=False)


MUTANTS: list[Mutate] = [
    _the_last_version_of_a_span_wins,
    _nothing_is_retired,
    _nothing_is_retracted,
    _a_judgment_counts_whatever_was_judged,
    _nothing_is_read_back,
    _closed_traces_are_not_looked_up,
    _the_sample_is_drawn_by_chance,
    _the_last_receipt_counts,
]


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__.strip("_").replace("_", " "))
def test_a_broken_product_breaks_the_law(mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    @settings(
        max_examples=400,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def law(data: st.DataObject) -> None:
        records = data.draw(facts())
        schedule = data.draw(schedules(len(records)))
        check_any_schedule(records, schedule)
        check_accounting(run_world(GRADING, records, schedule))

    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        law()
