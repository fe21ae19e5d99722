"""What workers that share a store may expect of it: clocks by partition, and to be told of their own buckets and of what is new."""

from itertools import count
from typing import TypeAlias

from builders import T0, a_span
from msgspec.structs import replace
from unit.clickhouse.records import COHORT, M0, a_result, a_run, a_run_version, a_version, retire, retract

from pipeline.model import ids
from pipeline.model.result import Feedback, Judgment, Outcome
from pipeline.model.run import Place, RunClass
from pipeline.model.span import Span
from pipeline.model.time import DAY, HOUR, SECOND
from pipeline.model.version import TraceKey, TraceVersion
from sinks.clickhouse.store import Store
from sinks.memory_gates import MemoryGateStore

AnyStore: TypeAlias = Store | MemoryGateStore
TRACE = "ab" * 16
partitions = count(1000)


async def test_the_clock_that_was_written_last_is_the_clock_of_a_partition_also_one_that_went_back(store: AnyStore) -> None:
    one, other = next(partitions), next(partitions)
    await store.write_clocks({one: T0 + HOUR, other: T0 + 1}, T0 + HOUR)
    await store.write_clocks({one: T0}, T0 + HOUR + SECOND)
    told = await store.clocks()
    assert (told[one], told[other]) == (T0, T0 + 1)


async def test_a_former_owner_that_writes_an_older_clock_late_changes_nothing(store: AnyStore) -> None:
    partition = next(partitions)
    await store.write_clocks({partition: T0 + SECOND}, T0 + SECOND)
    await store.write_clocks({partition: T0}, T0)
    assert (await store.clocks())[partition] == T0 + SECOND


async def test_up_to_when_rows_were_derived_from_is_no_clock_of_a_partition_of_traces(store: AnyStore) -> None:
    one, other = next(partitions), next(partitions)
    await store.write_derived([one, other], T0)
    await store.write_derived([one], T0 + HOUR)
    await store.write_derived([one], T0 + SECOND)  # a former owner, late
    derived = await store.derived()
    assert (derived[one], derived[other]) == (T0 + HOUR, T0)
    assert {one, other}.isdisjoint(await store.clocks())
    await store.write_clocks({one: T0 + DAY}, T0 + DAY)
    assert (await store.derived())[one] == T0 + HOUR


async def test_no_clocks_are_no_trouble_and_a_partition_that_nobody_owned_has_none(store: AnyStore) -> None:
    await store.write_clocks({}, T0)
    assert next(partitions) not in await store.clocks()


async def leave_unfinished(store: AnyStore, project: str) -> set[TraceKey]:
    """Leave one trace open, one with a pending run, and one with rows at a place that its run left."""
    is_open, pending, stray = (f"{number:032x}" for number in range(3))
    await store.insert_spans([a_span(project=project, trace_id=is_open)])
    await store.write([a_version(a_run_version(a_run(project, pending), run_class=RunClass.PENDING))])
    before = a_run_version(a_run(project, stray), 4, a_result("x"))
    moved = a_run_version(replace(before.run, place=Place(COHORT, M0 + DAY)), 8, a_result("x"))
    await store.write([a_version(before)])
    await store.write([a_version(moved, facts=2)])
    return {(project, trace_id) for trace_id in (is_open, pending, stray)}


async def test_an_owner_is_told_of_its_own_buckets_only(store: AnyStore) -> None:
    keys = await leave_unfinished(store, "shared")
    assert {key for key in await store.unfinished() if key[0] == "shared"} == keys
    for key in keys:
        mine = {ids.bucket(*key)}
        assert [one for one in await store.unfinished(mine) if one[0] == "shared"] == [key]
        assert key not in await store.unfinished(set(range(ids.BUCKETS)) - mine)
        assert key not in await store.misplaced(set(range(ids.BUCKETS)) - mine)
    assert await store.unfinished(set()) == await store.misplaced(set()) == []


async def test_a_trace_is_open_since_a_time_while_any_of_its_facts_came_after_it_and_all_of_them_count(store: AnyStore) -> None:
    async def is_open(project: str, since: int) -> bool:
        return (project, TRACE) in await store.unfinished(range(ids.BUCKETS), since)

    late = T0 + DAY
    facts: dict[str, Span | Judgment | Feedback] = {
        "span": a_span("00000000000000b2", project="late-span", received_ns=late),
        "judgment": Judgment("late-judgment", TRACE, "r", 4, "t", "c", "tone", Outcome.PASS, 4.0, judged_ns=late),
        "feedback": Feedback("late-feedback", TRACE, "f", 1.0, received_ns=late),
    }
    for name, fact in facts.items():
        project = f"late-{name}"
        await store.insert_spans([a_span(project=project, received_ns=T0)])
        assert (await is_open(project, T0), await is_open(project, T0 + 1)) == (True, False)
        await store.write([a_version(a_run_version(a_run(project)), facts=1)])
        assert not await is_open(project, T0)
        if isinstance(fact, Judgment):
            await store.insert_judgments([fact])
        elif isinstance(fact, Feedback):
            await store.insert_feedback([fact])
        else:
            await store.insert_spans([fact])
        # One new fact, and one graded: only the count of all facts, the old one included, tells that the trace is open.
        assert [await is_open(project, since) for since in (0, late, late + 1)] == [True, True, False]
        await store.write([a_version(a_run_version(a_run(project), 8), facts=2)])
        assert not await is_open(project, late)


async def test_a_run_is_pending_however_long_ago_its_deadline_was(store: AnyStore) -> None:
    """An owner that starts again gives a run all its time anew and writes no row for that."""
    run = a_run_version(a_run("overdue"), run_class=RunClass.PENDING, requested_ns=T0, deadline_ns=T0 + SECOND)
    await store.insert_spans([a_span(project="overdue")])
    await store.write([a_version(run)])
    assert ("overdue", TRACE) in await store.unfinished(range(ids.BUCKETS), T0 + 30 * DAY)


async def test_rows_at_a_former_place_are_found_since_they_were_written(store: AnyStore) -> None:
    before = a_run_version(a_run("strays"), 4, a_result("x"))
    moved = a_run_version(replace(before.run, place=Place(COHORT, M0 + DAY)), 8, a_result("x"))
    await store.write([a_version(before)])
    await store.write([a_version(moved, facts=2)])
    for find in (store.misplaced, store.unfinished):
        assert ("strays", TRACE) in await find(range(ids.BUCKETS), T0)
    await store.write([a_version(moved, facts=2, retired=retire(before, 8))])
    assert ("strays", TRACE) not in await store.misplaced(range(ids.BUCKETS), T0)


def a_late_write(project: str) -> tuple[TraceVersion, TraceVersion, TraceVersion]:
    """What a former owner writes that knows half of a trace, what its owner wrote that knows the whole, and what mends it.

    The run of the former heads no group of the whole, so the owner wrote nothing about it: it never heard of it.
    """
    ghost, run = (a_run(project, head=head) for head in ("a2", "a1"))
    half, whole = a_run_version(ghost, 4, a_result("x")), a_run_version(run, 12, a_result("x"))
    mended = a_version(whole, facts=3, retractions=(retract(ghost, run, 12),), retired=retire(half, 12))
    return a_version(half, facts=1), a_version(whole, facts=3), mended


async def test_a_run_that_never_was_is_found_whoever_wrote_last(store: AnyStore) -> None:
    for project, order in (("late-ghost", (1, 0)), ("early-ghost", (0, 1))):
        versions = a_late_write(project)
        await store.write([versions[order[0]]])
        assert (project, TRACE) not in await store.misplaced(range(ids.BUCKETS), T0)
        await store.write([versions[order[1]]])
        mine = {ids.bucket(project, TRACE)}
        for find in (store.misplaced, store.unfinished):
            for since in (0, T0):
                assert (project, TRACE) in await find(mine, since)
                assert (project, TRACE) not in await find(set(range(ids.BUCKETS)) - mine, since)
        await store.write([versions[2]])
        for since in (0, T0):
            assert (project, TRACE) not in await store.misplaced(mine, since)


async def test_a_run_that_never_was_is_found_in_a_trace_without_any_run(store: AnyStore) -> None:
    half, _, _ = a_late_write("nothing-but-a-ghost")
    await store.write([half])
    await store.write([a_version(project="nothing-but-a-ghost", facts=3, not_an_agent_run=True)])
    assert ("nothing-but-a-ghost", TRACE) in await store.misplaced(range(ids.BUCKETS), T0)


async def test_a_run_that_waits_for_the_rest_of_its_trace_is_none_that_never_was(store: AnyStore) -> None:
    """A run is as old as its trace's last version or newer: judged, expired, or closed before the rest of a trace that went on."""
    first, second = (a_run("newer", head=head) for head in ("a1", "a2"))
    await store.write([a_version(a_run_version(first, 4), a_run_version(second, 5), facts=1, version=5)])
    assert ("newer", TRACE) not in await store.misplaced(range(ids.BUCKETS), T0)
    await store.write([a_version(a_run_version(first, 12), facts=3, version=12, close_reason=None)])
    assert ("newer", TRACE) not in await store.misplaced(range(ids.BUCKETS), T0)
