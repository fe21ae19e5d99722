"""Minutes as the engine adds them up, against a fold of the same rows in Python; what is stale; what is read back."""

from decimal import Decimal
from itertools import count
from random import Random
from typing import Any

import pytest
from builders import T0
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace
from unit.clickhouse.records import COHORT, M0, PLACE, a_result, a_run, a_run_version, a_version, retire

from pipeline.model.result import Kind, Outcome, Result
from pipeline.model.run import Cohort, Place, Trouble
from pipeline.model.spending import Cost
from pipeline.model.time import DAY, MINUTE, SECOND
from pipeline.model.version import RunVersion, Sampling, result_rows
from pipeline.model.window import Series, Sums
from pipeline.stages.window import MinuteRow, fold, total, window
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.minutes import (
    Minutes,
    load_minutes,
    load_windows,
    minute_sums,
    stale_minutes,
    write_minutes,
    write_windows,
)
from sinks.clickhouse.window_table import stored_windows
from sinks.clickhouse.writer import write

projects = (f"minutes-{number}" for number in count())
number = st.none() | st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, 0.1, 1 / 3])
chance = st.sampled_from([1.0, 0.5, 1 / 3, 0.2, 0.07])
results = st.builds(
    Result,
    dimension=st.sampled_from(["a", "b", "c"]),
    kind=st.just(Kind.CODE),
    contract=st.sampled_from(["c1", "c2"]),
    outcome=st.none() | st.sampled_from(Outcome),
    value=number,
    lower=number,
    upper=number,
)
draws = st.lists(st.tuples(results, chance, st.booleans(), st.integers(1, 9), st.integers(0, 2), st.booleans()), max_size=12)


def versions_of(project: str, drawn: list[tuple[Result, float, bool, int, int, bool]]) -> list[tuple[RunVersion, bool]]:
    """Runs with one result each, and whether the result is retired afterwards."""
    made = []
    for index, (result, probability, sampled, facts, minutes, retired) in enumerate(drawn):
        place = Place(COHORT, M0 + minutes * MINUTE)
        run = a_run(project, f"{index:032x}", place=place, first_received_ns=T0 + index, start_ns=index % 4 and T0 - index)
        cost = Cost(Decimal(index) / 1000 if index % 3 else None, prices="2026-11-30-0badcafe")
        kind = {"a": Kind.CODE, "b": Kind.JUDGED, "c": Kind.VERDICT}[result.dimension]
        how: dict[str, Any] = {"sampling": Sampling("p", sampled, probability), "trouble": list(Trouble)[index % 3], "cost": cost}
        version = a_run_version(run, 4 * facts, replace(result, kind=kind), **how)
        made.append((version, retired))
    return made


def by_hand(made: list[tuple[RunVersion, bool]]) -> dict[tuple[str, str, int], Sums]:
    """The oracle: ``fold`` over the rows as they stand in the end."""
    rows: dict[tuple[str, str, int], list[MinuteRow]] = {}
    for version, retired in made:
        (row,) = result_rows(a_version(version))
        (result,) = version.results
        stands = MinuteRow(
            outcome=None if retired else result.outcome,
            weight=0.0 if retired else row.weight,
            version=row.version + 4 * retired,
            first_received_ns=row.first_received_ns,
            value=result.value,
            lower=result.lower,
            upper=result.upper,
            spent=None if retired else row.spent,
        )
        rows.setdefault((result.dimension, result.contract, version.run.place.minute_ns), []).append(stands)
    return {key: fold(some) for key, some in rows.items()}


def short(minutes: Minutes) -> dict[tuple[str, str, int], Sums]:
    return {(series.dimension, series.contract, at): sums for (series, at), sums in minutes.items()}


def close(one: Sums, other: Sums) -> bool:
    money = {"cost_usd": 0}
    some, more = ({**asdict(each), **money} for each in (one, other))
    return one.cost_usd == other.cost_usd and all(
        value == pytest.approx(more[name], rel=1e-12, abs=1e-9) for name, value in some.items()
    )


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=draws, seed=st.randoms(use_true_random=False))
def test_the_engine_adds_up_what_the_fold_adds_up_in_whatever_order_the_rows_came(
    database: ClickHouse, drawn: list[tuple[Result, float, bool, int, int, bool]], seed: Random
) -> None:
    minutes = [M0 + step * MINUTE for step in range(3)]
    seen = []
    for _ in range(2):
        project = next(projects)
        made = versions_of(project, drawn)
        written = [a_version(version) for version, _ in made]
        written += [
            replace(a_version(version, retired=retire(version, version.version + 4)), runs=())
            for version, retired in made
            if retired
        ]
        seed.shuffle(written)
        half = seed.randint(0, len(written))
        write(database, written[:half])
        write(database, written[half:])
        got = short(minute_sums(database, project, COHORT.id, minutes))
        expected = by_hand(made)
        assert got.keys() == expected.keys()
        assert all(close(got[key], expected[key]) for key in expected), (got, expected)
        seen.append(got)
    assert seen[0] == seen[1], "to the last bit"


def test_a_sum_has_the_same_bits_however_its_rows_lie_in_parts(database: ClickHouse) -> None:
    draw = Random(7)
    runs = [
        a_run_version(
            a_run("bits", f"{index:032x}"),
            4,
            a_result("tone", Kind.JUDGED, value=draw.uniform(-1, 1) * 10 ** draw.randint(-6, 6)),
            sampling=Sampling("p", True, draw.choice([1 / 3, 1 / 7, 0.9])),
        )
        for index in range(300)
    ]
    seen = []
    for project in ("bits-1", "bits-2", "bits-3"):
        draw.shuffle(runs)
        versions = [a_version(replace(one, run=replace(one.run, project=project))) for one in runs]
        start = 0
        while start < len(versions):
            end = start + draw.randint(1, 120)
            write(database, versions[start:end])
            start = end
        seen.append(short(minute_sums(database, project, COHORT.id, [M0])))
    assert seen[0] == seen[1] == seen[2]


def test_regraded_rows_and_other_cohorts_and_other_projects_are_not_added_up(database: ClickHouse) -> None:
    other = Place(Cohort("other"), M0)
    write(database, [a_version(a_run_version(a_run("apart"))), a_version(a_run_version(a_run("apart-2")))])
    write(database, [a_version(a_run_version(a_run("apart", "cd" * 16, place=other)))])
    database.insert(
        "results",
        ("project", "cohort_id", "minute", "dimension", "run_id", "contract", "weight", "outcome", "series", "version"),
        [["apart"], [COHORT.id], [M0 // SECOND], ["answer_present"], ["r"], ["c1"], [1.0], ["fail"], ["regraded"], [4]],
        None,
    )
    ((series, at),) = (found := minute_sums(database, "apart", COHORT.id, [M0]))
    assert series == Series("apart", COHORT, "answer_present", "code", "c1")
    assert (at, found[series, at].n, found[series, at].rows) == (M0, 1, 1)


def test_a_minute_that_nobody_was_in_holds_nothing(database: ClickHouse) -> None:
    assert minute_sums(database, "empty", COHORT.id, [M0]) == {}
    assert minute_sums(database, "empty", COHORT.id, []) == {}


def test_minutes_come_back_as_they_were_added_up_and_the_fuller_one_stays(database: ClickHouse) -> None:
    series = Series("kept", COHORT, "tone", "judged", "c1")
    full = fold([MinuteRow(Outcome.PASS, 1 / 3, 8, T0 + 7, value=1 / 7), MinuteRow(None, 3.0, 4, T0 + 5, lower=0.1, upper=0.9)])
    write_minutes(database, {(series, M0): full, (series, M0 + MINUTE): Sums(rows=1, fingerprint=4)})
    write_minutes(database, {(series, M0): fold([MinuteRow(Outcome.PASS, 1.0, 4, T0)])})
    assert load_minutes(database, "kept", COHORT.id, M0, M0 + MINUTE) == {(series, M0): full}
    assert load_minutes(database, "kept", COHORT.id, M0, M0 + 2 * MINUTE) == {
        (series, M0): full,
        (series, M0 + MINUTE): Sums(rows=1, fingerprint=4),
    }
    assert load_minutes(database, "kept-not", COHORT.id, M0, M0 + DAY) == {}


def test_a_minute_of_retired_rows_alone_belongs_to_the_series_of_its_neighbours(database: ClickHouse) -> None:
    series = Series("kinds", COHORT, "tone", "judged", "c1")
    write_minutes(
        database,
        {(series, M0): Sums(n=1, rows=1, fingerprint=4), (replace(series, kind=""), M0 + MINUTE): Sums(rows=1, fingerprint=8)},
    )
    assert {found for found, _ in load_minutes(database, "kinds", COHORT.id, M0, M0 + DAY)} == {series}


def test_a_minute_beyond_what_a_datetime_holds_is_a_minute(database: ClickHouse) -> None:
    far = 2**64 - 2**64 % MINUTE - MINUTE
    place = Place(Cohort("agent", "1", "backfill"), far)
    write(database, [a_version(a_run_version(a_run("far", place=place, end_ns=2**64 - 1)))])
    ((series, at),) = minute_sums(database, "far", place.cohort.id, [far])
    assert Place(series.cohort, at) == place
    assert ("far", place) in stale_minutes(database)


def stale(database: ClickHouse, project: str) -> list[int]:
    return [place.minute_ns for found, place in stale_minutes(database) if found == project]


def publish(database: ClickHouse, project: str, *minutes: int) -> None:
    write_minutes(database, minute_sums(database, project, COHORT.id, minutes))


def test_a_minute_is_stale_until_it_is_published_and_again_when_a_row_changes(database: ClickHouse) -> None:
    run = a_run("stale")
    first = a_run_version(run, 4)
    write(database, [a_version(first)])
    assert stale(database, "stale") == [M0]
    publish(database, "stale", M0)
    assert stale(database, "stale") == []
    write(database, [a_version(first)])
    assert stale(database, "stale") == [], "the same row again is no change"
    moved = replace(run, place=Place(COHORT, M0 + MINUTE))
    write(database, [a_version(a_run_version(moved, 8), facts=2, retired=retire(first, 8))])
    assert stale(database, "stale") == [M0, M0 + MINUTE], "the place it left has changed too"
    publish(database, "stale", M0, M0 + MINUTE)
    assert stale(database, "stale") == []


def test_one_more_contract_in_a_minute_makes_it_stale(database: ClickHouse) -> None:
    write(database, [a_version(a_run_version(a_run("contract")))])
    publish(database, "contract", M0)
    write(database, [a_version(a_run_version(a_run("contract"), 4, a_result(contract="c2")))])
    assert stale(database, "contract") == [M0]


def test_only_minutes_with_new_rows_are_looked_at_since_a_time(database: ClickHouse) -> None:
    write(database, [a_version(a_run_version(a_run("since")))])
    (now,) = database.query("SELECT toUnixTimestamp64Nano(now64(9)) AS ns")
    assert [place for project, place in stale_minutes(database, now["ns"]) if project == "since"] == []
    assert [place for project, place in stale_minutes(database, now["ns"] - DAY) if project == "since"] == [PLACE]


def test_published_windows_come_back_and_what_they_were_made_of_orders_them(database: ClickHouse) -> None:
    series = Series("windows", COHORT, "tone", "judged", "c1")
    sums = fold([MinuteRow(Outcome.PASS, 2.0, 8, T0, value=0.75), MinuteRow(Outcome.FAIL, 1.0, 4, T0 + 1, value=0.25)])
    fuller = total([sums, fold([MinuteRow(Outcome.FAIL, 1.0, 4, T0 - 5)])])
    start, length = M0 - 4 * MINUTE, 5 * MINUTE
    made, amended = window(series, start, length, sums), window(series, start, length, fuller)
    empty = window(series, start + MINUTE, length, Sums())
    write_windows(database, [amended], amended=True)
    write_windows(database, [made, empty])
    read = load_windows(database, "windows", COHORT.id, length, start, start + 2 * MINUTE)
    kept = Sums(n=3, decided=3, passed=1, first_received_ns=T0 - 5)
    assert read == [replace(amended, sums=kept), replace(empty, sums=Sums())]
    assert read[1].rate is None
    assert load_windows(database, "windows", COHORT.id, length, start, start + MINUTE) == read[:1]
    assert load_windows(database, "windows", COHORT.id, MINUTE, start, start + MINUTE) == []
    assert load_windows(database, "other", COHORT.id, length, start, start + DAY) == []
    assert stored_windows(database, "windows") == {("tone", length)}
    assert stored_windows(database, "other") == set()
