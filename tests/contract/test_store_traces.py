"""What the owner of traces may expect of a store: the same of the one in memory and of those in ClickHouse."""

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import TypeAlias

import pytest
from builders import T0, a_log_record, a_span
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from unit.clickhouse.records import COHORT, M0, a_result, a_run, a_run_version, a_version, retract

from pipeline.model.result import Feedback, Judgment, Outcome
from pipeline.model.run import CloseReason, Place, RunClass
from pipeline.model.time import DAY, SECOND
from pipeline.model.topology import DeadLetter
from pipeline.model.version import ResultKey, Retired, StoredTrace, TraceKey, TraceVersion
from pipeline.stages.turn import keys
from sinks.clickhouse.store import Store
from sinks.memory import MemoryStore

AnyStore: TypeAlias = Store | MemoryStore
TRACE = "ab" * 16
names = (f"world-{number}" for number in count())


async def load_one(store: AnyStore, project: str, trace_id: str = TRACE) -> StoredTrace:
    return (await store.load([(project, trace_id)]))[project, trace_id]


async def test_a_trace_that_nobody_heard_of_is_empty_and_was_never_written(store: AnyStore) -> None:
    assert await load_one(store, "nobody") == StoredTrace("nobody", TRACE)
    assert await store.written([("nobody", TRACE)]) == set()


@pytest.mark.parametrize("order", [(0, 5), (5, 0)], ids=["in order", "the first one comes last"])
async def test_of_equal_facts_the_first_stays(store: AnyStore, order: tuple[int, int]) -> None:
    project = f"equal-{order[0]}"
    span = a_span(project=project)
    judgment = Judgment(project, TRACE, "r", 4, "t", "c", "tone", Outcome.PASS, 4.0, judged_ns=T0)
    thumb = Feedback(project, TRACE, "f", -1.0, received_ns=T0, span_id="00000000000000a1")
    record = a_log_record(project=project, body={"content": "hi"}, attributes={"x": [1.5, None]}, position=3)
    for later in order:
        await store.insert_spans([replace(span, received_ns=span.received_ns + later * SECOND)])
        await store.insert_log_records([replace(record, received_ns=record.received_ns + later, position=1 if later else 3)])
        await store.insert_judgments([replace(judgment, score=4.0 - later / 5, judged_ns=T0 + later)])
        await store.insert_feedback([replace(thumb, value=later - 1.0, received_ns=T0 + later)])
    stored = await load_one(store, project)
    assert (stored.spans, stored.judgments, stored.feedback) == ((span,), (judgment,), (thumb,))
    assert stored.log_records == (record,)


async def test_log_records_are_facts_of_their_trace_with_and_without_its_spans(store: AnyStore) -> None:
    key = ("logged", TRACE)
    await store.insert_log_records([a_log_record(project="logged")])
    assert await store.written([key]) == {key}, "what came before any span is looked up with the first one"
    assert key in await store.unfinished()
    assert key in await store.unfinished(since_ns=T0)
    assert key not in await store.unfinished(since_ns=T0 + DAY)
    await store.insert_spans([a_span(project="logged")])
    await store.write([a_version(a_run_version(a_run("logged"), 8), facts=2)])
    assert key not in await store.unfinished()
    await store.insert_log_records([a_log_record(project="logged"), a_log_record(project="logged", body="another")])
    assert key in await store.unfinished()


async def test_a_trace_is_unfinished_until_its_traces_row_knows_every_fact_and_no_run_is_pending(store: AnyStore) -> None:
    key = ("unfinished", TRACE)
    await store.insert_spans([a_span(project="unfinished")])
    assert key in await store.unfinished()
    run = a_run("unfinished")
    await store.write([a_version(a_run_version(run, 4), close_reason=None)])
    assert key in await store.unfinished()
    assert await store.written([key]) == {key}
    await store.write([a_version(a_run_version(run, 4, run_class=RunClass.PENDING))])
    assert key in await store.unfinished()
    await store.write([a_version(a_run_version(run, 5, run_class=RunClass.UNRESOLVED, class_reason="expired"), version=5)])
    assert key not in await store.unfinished()
    await store.insert_feedback([Feedback("unfinished", TRACE, "f", 1.0, received_ns=T0)])
    assert key in await store.unfinished()


async def test_a_trace_is_unfinished_when_one_of_its_facts_turns_out_to_have_come_earlier(store: AnyStore) -> None:
    key = ("earlier", TRACE)
    span, judged = (
        a_span(project="earlier"),
        Judgment("earlier", TRACE, "r", 4, "t", "c", "tone", Outcome.PASS, 4.0, judged_ns=T0),
    )
    record, thumb = a_log_record(project="earlier"), Feedback("earlier", TRACE, "f", -1.0, received_ns=T0)
    await store.insert_spans([span])
    await store.insert_log_records([record])
    await store.insert_judgments([judged])
    await store.insert_feedback([thumb])
    receipts = span.received_ns + record.received_ns + 2 * T0

    async def graded(receipts: int) -> StoredTrace:
        await store.write([replace(a_version(a_run_version(a_run("earlier"), 16), facts=4), receipts=receipts)])
        assert key not in await store.unfinished()
        return await load_one(store, "earlier")

    assert (await graded(receipts)).graded_receipts == receipts
    await store.insert_spans([replace(span, received_ns=span.received_ns + SECOND)])
    assert key not in await store.unfinished(), "it came again, which is no news"
    for earlier in range(1, 5):
        match earlier:
            case 1:
                await store.insert_spans([replace(span, received_ns=span.received_ns - 1)])
            case 2:
                await store.insert_log_records([replace(record, received_ns=record.received_ns - 1)])
            case 3:
                await store.insert_judgments([replace(judged, judged_ns=T0 - 1)])
            case _:
                await store.insert_feedback([replace(thumb, received_ns=T0 - 1)])
        assert key in await store.unfinished(since_ns=T0 - DAY)
        await graded(receipts - earlier)


async def test_a_trace_whose_row_does_not_say_when_its_facts_came_is_finished(store: AnyStore) -> None:
    await store.insert_spans([a_span(project="before")])
    await store.write([replace(a_version(a_run_version(a_run("before"), 4)), receipts=0)])
    assert ("before", TRACE) not in await store.unfinished()


async def test_what_could_not_be_processed_is_kept(store: AnyStore) -> None:
    letter = DeadLetter("buried", "assemble", "it broke", b"\xff")
    for _ in range(2):
        await store.bury([letter])
    if isinstance(store, MemoryStore):
        kept = list(store.dead_letters.values())
    else:
        kept = [(one.origin, one.reason, one.body) for one in await store.letters.by_id([letter.id])]
    assert kept == [("assemble", "it broke", b"\xff")]


async def test_reads_and_writes_of_many_tasks_do_not_disturb_each_other(store: AnyStore) -> None:
    async def one(number: int) -> None:
        trace_id = f"{number:032x}"
        await store.insert_spans([a_span(project="tasks", trace_id=trace_id)])
        await store.write([a_version(a_run_version(a_run("tasks", trace_id)))])
        stored = await load_one(store, "tasks", trace_id)
        assert (len(stored.spans), len(stored.runs), stored.graded_facts) == (1, 1, 1)

    await asyncio.gather(*(one(number) for number in range(20)))


def normal(stored: StoredTrace) -> StoredTrace:
    return replace(
        stored,
        spans=tuple(sorted(stored.spans, key=lambda one: (one.span_id, one.content_hash))),
        runs=tuple(sorted(stored.runs, key=lambda one: one.run_id)),
    )


def a_world(project: str, drawn: Sequence[tuple[int, int, int, bool, bool, bool]]) -> list[TraceVersion]:
    """Versions of two traces with two runs each: runs move, are pending, are merged, and leave their old rows behind or not."""
    versions = []
    before: dict[str, set[ResultKey]] = {}
    for number, facts, place, pending, merges, tidies in drawn:
        trace_id = f"{number:032x}"
        run, gone = (a_run(project, trace_id, head, place=Place(COHORT, M0 + place * DAY)) for head in ("a1", "a2"))
        label = RunClass.PENDING if pending else RunClass.JUDGED
        results = a_result("x"), a_result("y", contract=f"c{place}")
        written = [a_run_version(one, 4 * facts, *results, run_class=label) for one in ((run,) if merges else (run, gone))]
        now = {key for one in written for key in keys(one)}
        known = before.setdefault(trace_id, set())
        versions.append(
            a_version(
                *written,
                facts=facts,
                retractions=(retract(gone, run, 4 * facts),) if merges else (),
                retired=tuple(Retired(key, 4 * facts) for key in sorted(known - now)) if tidies else (),
                close_reason=None if pending and merges else CloseReason.HEAD_ENDED,
            )
        )
        known |= now
    return versions


draws = st.tuples(st.integers(0, 1), st.integers(1, 4), st.integers(0, 2), st.booleans(), st.booleans(), st.booleans())


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    drawn=st.lists(draws, max_size=5),
    spans=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 5)), max_size=5),
)
def test_both_stores_say_the_same_after_the_same_history(
    clickhouse: Store, drawn: list[tuple[int, int, int, bool, bool, bool]], spans: list[tuple[int, int, int]]
) -> None:
    project = next(names)
    facts = [
        a_span(f"{span:016x}", project=project, trace_id=f"{trace:032x}", received_ns=T0 + late)
        for trace, span, late in [(0, 9, 0), (1, 9, 0), *spans]
    ]
    traces: list[TraceKey] = [(project, f"{number:032x}") for number in range(3)]
    versions = a_world(project, drawn)

    async def told(store: AnyStore) -> tuple[object, ...]:
        for fact in facts:
            await store.insert_spans([fact])
        for version in versions:
            await store.write([version])
        ours = [{key for key in await ask() if key[0] == project} for ask in (store.unfinished, store.misplaced)]
        loaded = {key: normal(stored) for key, stored in (await store.load(traces)).items()}
        return loaded, await store.written(traces), ours[0] | ours[1], ours[1]

    memory = asyncio.run(told(MemoryStore()))
    assert asyncio.run(told(clickhouse)) == memory
