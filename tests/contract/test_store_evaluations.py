"""Evaluations and windows for people: every store keeps them whole, and gives the same when they are made again from its rows."""

import asyncio
from itertools import count, pairwise
from typing import Any, TypeAlias

import pytest
from contract.test_store_gates import COHORTS, MINUTES, Step, a_history, history, steps
from hypothesis import given
from hypothesis import strategies as st
from unit.clickhouse.records import COHORT, M0

from pipeline.errors import ConfigurationError
from pipeline.model.evaluation import Evaluation
from pipeline.model.quality import QualitySpec
from pipeline.model.result import Kind, Outcome
from pipeline.model.run import Cohort, Trouble
from pipeline.model.time import MINUTE
from pipeline.model.version import Spent
from pipeline.model.window import Series, Sums, Touched, Window
from pipeline.runtime.evaluations import Evaluations, UnknownEvaluationError
from pipeline.runtime.windows import Evaluating, recompute
from pipeline.stages.evaluate import evaluate
from pipeline.stages.window import MinuteRow, fold, window
from sinks.clickhouse.store import Store
from sinks.memory_gates import MemoryGateStore

AnyStore: TypeAlias = Store | MemoryGateStore
LENGTH = 5 * MINUTE
OTHER = Cohort("other", "1", "production")
names = (f"evaluations-{number}" for number in count())
SPEC = QualitySpec(safety_checks=("forbid",), judged={"c1": (0, 1)})


def an_evaluation(project: str, minute: int = 0, runs: int = 1, cohort: Cohort = COHORT, **more: Any) -> Evaluation:
    """An evaluation with something in every field: one run passed, the others failed."""
    rows = [
        MinuteRow(Outcome.FAIL if number else Outcome.PASS, 1 / 0.3, 4, 1, spent=Spent(7, None, Trouble.ALARM))
        for number in range(runs)
    ]
    series = Series(project, cohort, "verdict", Kind.VERDICT, "c")
    judged = Series(project, cohort, "tone", Kind.JUDGED, "c1")
    parts = (
        {series: [fold(rows)], judged: [fold([MinuteRow(Outcome.PASS, 1.0, 4, 1, value=0.1)])]}
        if runs
        else {series: [Sums(rows=1, fingerprint=4)]}
    )
    return evaluate(project, cohort, M0 + minute * MINUTE, LENGTH, parts, SPEC, "abc", **more)


async def test_an_evaluation_comes_back_whole_by_as_much_of_its_id_as_is_unique(store: AnyStore) -> None:
    made = [an_evaluation("whole", minute, runs=3) for minute in range(3)]
    await store.write_evaluations(made)
    for one in made:
        assert await store.evaluations.named("whole", one.id, 2) == [one]
        assert await store.evaluations.named("whole", one.id[:20], 2) == [one]
    assert len(await store.evaluations.named("whole", "", 2)) == 2
    assert await store.evaluations.named("nobody", made[0].id, 2) == []


async def test_what_was_made_of_more_stays(store: AnyStore) -> None:
    less, more = an_evaluation("more", runs=2), an_evaluation("more", runs=5)
    await store.write_evaluations([more])
    await store.write_evaluations([less])
    assert await store.evaluations.named("more", less.id, 2) == [more]


async def test_the_latest_end_last_and_a_window_of_retired_rows_is_none(store: AnyStore) -> None:
    made = [an_evaluation("late", minute) for minute in (3, 1, 2)]
    theirs, nothing = an_evaluation("late", 9, cohort=OTHER), an_evaluation("late", 10, runs=0)
    await store.write_evaluations([*made, theirs, nothing])
    assert await store.evaluations.latest("late") == [theirs, made[0], made[2], made[1]]
    assert await store.evaluations.latest("late", COHORT.agent, 2) == [made[0], made[2]]
    assert await store.evaluations.latest("nobody") == []


async def _made(store: AnyStore, project: str, drawn: list[Step]) -> list[Evaluation]:
    """Write runs, add them up, and return the evaluations, each of which is made again to the same."""
    touched = [Touched(project, cohort, minute) for cohort in COHORTS for minute in MINUTES]
    for version in a_history(project, drawn):
        await store.write([version])
        await store.write_minutes(await recompute(store, touched, [LENGTH], lambda _: False, Evaluating(lambda *_: SPEC, "abc")))
    known = Evaluations(store, {"default": SPEC}, "default")
    found = await store.evaluations.latest(project, limit=1000)
    for one in found:
        again = await known.again(project, one.id)
        assert again.equal, again
    return found


@history
@given(st.lists(steps, min_size=1, max_size=4))
def test_both_stores_evaluate_alike_and_make_every_evaluation_again(clickhouse: Store, drawn: list[Step]) -> None:
    project = next(names)
    found, expected = asyncio.run(_made(clickhouse, project, drawn)), asyncio.run(_made(MemoryGateStore(), project, drawn))
    assert found == expected


async def test_an_evaluation_that_is_not_there_or_not_told_apart_is_said_so(store: AnyStore) -> None:
    await store.write_evaluations([an_evaluation("two", minute) for minute in range(20)])
    known = Evaluations(store, {"default": SPEC}, "default")
    for name, said in (("xyz", "has no evaluation 'xyz'"), ("", "has no evaluation"), ("gate-run-7", "gate runs have none yet")):
        with pytest.raises(UnknownEvaluationError, match=said):
            await known.again("two", name)
    digits = sorted(one.id[0] for one in await store.evaluations.latest("two"))
    shared = next(one for one, other in pairwise(digits) if one == other)  # twenty ids begin with at most sixteen digits
    with pytest.raises(ConfigurationError, match="fits several evaluations"):
        await known.one("two", shared)


async def test_windows_for_people_are_the_latest_of_a_dimension_with_all_counts(clickhouse: Store) -> None:
    def a_window(cohort: Cohort, minute: int, dimension: str = "verdict", length: int = LENGTH) -> Window:
        rows = [
            MinuteRow(outcome, 2.0, 4, 1) for outcome in (Outcome.PASS, Outcome.GRADER_ERROR, Outcome.INSUFFICIENT_EVIDENCE, None)
        ]
        return window(Series("people", cohort, dimension, Kind.VERDICT, "c"), M0 + minute * MINUTE, length, fold(rows))

    made = [
        a_window(COHORT, 1),
        a_window(COHORT, 2),
        a_window(OTHER, 1),
        a_window(COHORT, 3, "tone"),
        a_window(COHORT, 4, length=MINUTE),
    ]
    empty = window(Series("people", COHORT, "verdict", Kind.VERDICT, "c"), M0 + 9 * MINUTE, LENGTH, Sums(rows=1, fingerprint=4))
    await clickhouse.write_windows([*made, empty])
    found = await clickhouse.windows.latest("people", "verdict", LENGTH)
    assert [(one.series.cohort, one.start_ns) for one in found] == [
        (COHORT, made[1].start_ns),
        (OTHER, made[2].start_ns),
        (COHORT, made[0].start_ns),
    ]
    assert [(one.sums.n, one.sums.passed, one.sums.grader_errors, one.sums.pending) for one in found] == [(4, 1, 1, 1)] * 3
    assert len(await clickhouse.windows.latest("people", "verdict", LENGTH, OTHER.agent)) == 1
    assert len(await clickhouse.windows.latest("people", "verdict", LENGTH, limit=2)) == 2
