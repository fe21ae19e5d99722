"""Hard gates are given what fails, live and now, and nothing else."""

from builders import T0
from msgspec.structs import replace
from unit.clickhouse.records import (
    COHORT,
    M0,
    UNSAMPLED,
    a_result,
    a_run,
    a_run_version,
    a_version,
    retire,
    retract,
)

from pipeline.model.result import Kind, Outcome
from pipeline.model.run import Place
from pipeline.model.time import DAY, MINUTE
from pipeline.model.window import Touched, Transition, Trip
from pipeline.stages.gate_hard import Failure
from sinks.clickhouse.connection import ClickHouse
from sinks.clickhouse.failures import failures, untripped_failures
from sinks.clickhouse.gates import write_trips
from sinks.clickhouse.writer import write


def of_minute(database: ClickHouse, project: str, minute_ns: int = M0) -> list[Failure]:
    return failures(database, [Touched(project, COHORT, minute_ns)])


def untripped(database: ClickHouse, project: str, since_ns: int = 0) -> list[str]:
    return [one.run_id for one in untripped_failures(database, since_ns) if one.project == project]


def test_a_hard_gate_is_given_the_failing_checks_of_touched_minutes_sampled_or_not(database: ClickHouse) -> None:
    failing = a_run_version(
        a_run("hard", "01" * 16), 4, a_result("forbid", outcome=Outcome.FAIL, reason="deleted it"), sampling=UNSAMPLED
    )
    others = (
        a_run_version(a_run("hard", "02" * 16), 4, a_result("forbid")),
        a_run_version(a_run("hard", "03" * 16), 4, a_result("forbid", outcome=Outcome.INSUFFICIENT_EVIDENCE)),
        a_run_version(a_run("hard", "04" * 16), 4, a_result("tone", Kind.JUDGED, Outcome.FAIL)),
        a_run_version(a_run("hard", "05" * 16, place=Place(COHORT, M0 + MINUTE)), 4, a_result("forbid", outcome=Outcome.FAIL)),
        a_run_version(a_run("hard-other"), 4, a_result("forbid", outcome=Outcome.FAIL)),
    )
    write(database, [a_version(one) for one in (failing, *others)])
    (found,) = of_minute(database, "hard")
    assert (found.run_id, found.cohort, found.minute_ns, found.dimension) == (failing.run.run_id, COHORT, M0, "forbid")
    assert "deleted it" in found.reason
    assert failures(database, []) == []


def test_a_failure_is_gone_once_a_later_version_passes_or_moves_or_is_retracted(database: ClickHouse) -> None:
    failed = {
        name: a_run_version(a_run(name), 4, a_result("forbid", outcome=Outcome.FAIL)) for name in ("passes", "moves", "merges")
    }
    write(database, [a_version(one) for one in failed.values()])
    write(database, [a_version(a_run_version(a_run("passes"), 8, a_result("forbid")), facts=2)])
    assert of_minute(database, "passes") == []
    before = failed["moves"]
    moved = replace(before.run, place=Place(COHORT, M0 + MINUTE))
    write(database, [a_version(replace(before, run=moved, version=8), facts=2, retired=retire(before, 8))])
    assert of_minute(database, "moves") == []
    assert [one.minute_ns for one in of_minute(database, "moves", M0 + MINUTE)] == [M0 + MINUTE]
    before, heir = failed["merges"], a_run("merges", head="a9")
    retraction = retract(before.run, heir, 8)
    write(database, [a_version(a_run_version(heir, 8), facts=2, retractions=(retraction,), retired=retire(before, 8))])
    assert of_minute(database, "merges") == []


def test_failures_whose_run_no_trip_of_the_project_names_are_found_without_being_told(database: ClickHouse) -> None:
    failed = [a_run_version(a_run("untold", f"{number:032x}"), 4, a_result("forbid", outcome=Outcome.FAIL)) for number in (1, 2)]
    write(database, [a_version(one) for one in failed])
    tripped, untold = (one.run.run_id for one in failed)
    trip = Trip("untold", "g", "hard", COHORT, "t", Transition.FIRED, T0, run_id=tripped)
    write_trips(database, [trip, replace(trip, project="elsewhere", run_id=untold)])
    assert untripped(database, "untold") == [untold]
    assert untripped(database, "untold", M0 + DAY) == []
