"""What others met when they put runs together from spans (reliability section 2.2), each fault with its whole kind.

One row a fault: its number, what happens, what must hold. Where a fault is one of arrival, it is tried in every order.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

import msgspec
import pytest
from assembly_law import GRADING, grading
from worlds import T0, Action, World, agent, in_order, log_record, model, run_world, runs_of, span, tool

from pipeline.model.ids import uniform
from pipeline.model.result import Feedback
from pipeline.model.run import CloseReason, Ended, RunClass
from pipeline.model.span import Span
from pipeline.model.time import HOUR, MINUTE, SECOND
from pipeline.model.topology import Record
from pipeline.model.version import RunVersion
from pipeline.runtime.clock import ManualClock
from pipeline.runtime.intake import Accepted, Intake
from sinks.clickhouse.run_rows import run_rows

TRACE = f"{1:032x}"
HALF = grading(sampling={"rate": 0.5, "keep": ["thumbs_down"]})


def a_run(trace: int = 0, project: str = "default") -> list[Span]:
    """An agent that asks its model, calls a tool and answers."""
    return [
        agent(trace, 0, None, "a", end=T0 + 9 * SECOND, project=project),
        tool(trace, 1, 0, "lookup", fails=False, project=project),
        model(trace, 2, 0, "refunded", project=project),
    ]


def live(world: World) -> list[RunVersion]:
    return sorted(world.store.live_runs(), key=lambda one: one.run.run_id)


def the_run(records: Sequence[Record], *schedule: Action) -> RunVersion:
    (one,) = live(run_world(GRADING, records, schedule or in_order(records)))
    return one


def in_every_order(records: Sequence[Record]) -> Iterator[World]:
    """One world for each order in which the records can come, one by one and far apart, and one for all at once."""
    yield run_world(GRADING, records, in_order(records))
    for order in permutations(range(len(records))):
        yield run_world(GRADING, records, [Action("arrive", records=(index,), seconds=100) for index in order])


def alike(records: Sequence[Record]) -> list[RunVersion]:
    """The live runs, after making sure that they are the same in every order."""
    first, *others = in_every_order(records)
    for other in others:
        assert runs_of(other) == runs_of(first)
    return live(first)


# R29 … R35: when a trace is over


def late_spans_make_new_versions_of_the_same_run() -> None:
    records = a_run()
    for last in range(3):
        order = [index for index in range(3) if index != last]
        late = [Action("arrive", records=tuple(order), seconds=HOUR // SECOND), Action("arrive", records=(last,), seconds=60)]
        world = run_world(GRADING, records, late)
        assert runs_of(world) == runs_of(run_world(GRADING, records, in_order(records)))
        assert live(world)[0].version >> 2 >= 3


async def _when_it_closes(records: Sequence[Span]) -> tuple[int, CloseReason | None]:
    world = World(GRADING)
    began = world.now
    await world.arrive([msgspec.structs.replace(one, received_ns=began) for one in records])
    while not world.store.traces:
        wake = world.owner.next_wake
        assert wake is not None, "nobody waits for it, and it is not graded"
        world.now = max(world.now, wake)
        await world.owner.tick(world.times)
    ((_, trace),) = world.store.traces.items()
    return world.now - began, trace.close_reason


def a_root_that_ended_is_waited_for_no_longer_than_a_quiet_period() -> None:
    assert asyncio.run(_when_it_closes(a_run())) == (10 * SECOND, CloseReason.HEAD_ENDED)


def late_spans_never_change_the_draw() -> None:
    drawn = set()
    for trace in range(12):
        records = a_run(trace)
        late = [Action("arrive", records=(0, 1), seconds=HOUR // SECOND), Action("arrive", records=(2,), seconds=HOUR // SECOND)]
        (before,) = live(run_world(HALF, records, late[:1]))
        (after,) = live(run_world(HALF, records, late))
        assert after.sampling == before.sampling
        assert after.sampling.sampled == (uniform("default", f"{trace + 1:032x}", "1") < 0.5)
        drawn.add(after.sampling.sampled)
    assert drawn == {True, False}, "the test shows nothing"


def handing_over_never_waits_for_what_waits_for_it() -> None:
    async def play() -> int:
        another = asyncio.Event()

        async def insert(_: Sequence[Accepted]) -> None:
            return None

        async def hand_over(_: Sequence[Accepted]) -> None:
            await another.wait()  # an owner that goes on only when more was handed in

        intake = Intake(insert, hand_over, ManualClock(T0))
        running = asyncio.create_task(intake.run())
        first = asyncio.create_task(intake.store(a_run(0)))
        await asyncio.sleep(0)
        others = [asyncio.create_task(intake.store(a_run(number))) for number in range(1, 200)]
        await asyncio.sleep(0)
        another.set()
        async with asyncio.timeout(30):
            await asyncio.gather(first, *others)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return len(others)

    assert asyncio.run(play()) == 199


# R37 … R44: what hangs where


def other_roots_of_a_trace_overwrite_nothing() -> None:
    records = [
        *a_run()[::2],
        span(0, 10, None, name="POST /other", start=T0 - MINUTE, end=T0 + HOUR),
        model(0, 11, None, "something else entirely", start=T0 + MINUTE, end=T0 + 2 * MINUTE),
    ]
    (one,) = alike(records)
    assert (one.run.place.cohort.agent, one.run.request, one.run.answer, one.run.head_span_id) == (
        "a",
        "question 0",
        "refunded",
        f"{1:016x}",
    )


def what_is_said_of_a_run_does_not_depend_on_who_came_first() -> None:
    environments = ("prod", "staging", "dev", "")
    records = [model(0, index, 0 if index else None, "hi", environment=one) for index, one in enumerate(environments)]
    (one,) = alike(records)
    assert one.run.place.cohort.environment == "prod", "the head's own"


def a_span_below_one_that_never_came_is_part_of_the_run_and_flagged() -> None:
    (one,) = alike([*a_run()[::2], tool(0, 7, 60, "lost", fails=False)])
    assert [call.name for call in one.run.tool_calls] == ["lost"]
    assert "missing_parent" in one.run.flags


def no_span_vanishes_however_its_parents_hang() -> None:
    oddly = [
        tool(0, 5, 5, "own parent", fails=False),
        tool(0, 6, 7, "in a cycle", fails=False),
        tool(0, 7, 6, "in a cycle", fails=False),
    ]
    (one,) = alike([a_run()[0], *oddly])
    assert len(one.run.steps) == 4
    for alone in ([*oddly], [agent(0, 5, 6, "x"), agent(0, 6, 5, "y")], [agent(0, 5, 5, "x")]):
        (found,) = alike(alone)
        assert len(found.run.steps) == len(alone)


def without_its_root_a_run_closes_when_idle_and_is_incomplete() -> None:
    records = [tool(0, 1, 0, "lookup", fails=False), model(0, 2, 0, "")]
    assert asyncio.run(_when_it_closes(records)) == (5 * MINUTE, CloseReason.IDLE)
    (one,) = alike(records)
    assert (one.run_class in (RunClass.UNSAMPLED, RunClass.UNRESOLVED), one.run.completed) == (True, False)


def a_run_that_was_killed_is_over_some_day_and_nobody_says_why() -> None:
    killed = [agent(0, 0, None, "a", end=0), tool(0, 1, 0, "lookup", fails=False)]
    assert asyncio.run(_when_it_closes(killed)) == (5 * MINUTE, CloseReason.IDLE)
    for records in (killed, killed[1:]):
        (one,) = alike(records)
        assert (one.run.ended, one.run.error, one.run.answer) == (Ended.SILENCE, None, None)


# R46 … R52: what is one thing and what is two


def what_comes_again_or_at_once_is_counted_once() -> None:
    records = a_run()
    again = [*records, *records, msgspec.structs.replace(records[2], received_ns=records[2].received_ns + HOUR)]
    expected = the_run(records)
    for order in ([0, 1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1, 0], [2, 5, 6, 0, 1, 3, 4]):
        apart = [Action("arrive", records=(index,), seconds=70) for index in order]
        found = the_run(again, *apart)
        assert (found.run, found.version) == (expected.run, expected.version)
    assert (expected.run.usage.input, expected.run.model_calls, len(expected.run.tool_calls)) == (10, 1, 1)


def the_same_ids_in_two_projects_are_two_runs_with_nothing_in_common() -> None:
    ours, theirs = a_run(), a_run(project="theirs")
    said = Feedback("theirs", TRACE, "f", -1.0, received_ns=T0)
    logged = log_record(0, 2, "gen_ai.evaluation.result", project="theirs", **{"gen_ai.evaluation.score.label": "fail"})
    records: list[Record] = [*ours, *theirs, said, logged]
    one, other = sorted(live(run_world(HALF, records, in_order(records))), key=lambda run: run.run.project)
    assert (one.run.project, other.run.project) == ("default", "theirs")
    assert one.run.run_id != other.run.run_id
    assert (one.feedback, len(other.feedback)) == ((), 2)
    assert one.version == the_run(ours).version, "facts of another project are no facts of this trace"


def a_trace_whose_id_was_cut_on_the_way_is_another_trace_and_flagged() -> None:
    whole = "5b8efff798038103d269b633813fc60c"
    cut = "0" * 16 + whole[16:]
    records = [msgspec.structs.replace(one, trace_id=whole if index == 0 else cut) for index, one in enumerate(a_run())]
    found = {one.run.trace_id: one.run for one in live(run_world(GRADING, records, in_order(records)))}
    assert found.keys() == {whole, cut}
    assert "short_trace_id" in found[cut].flags
    assert "short_trace_id" not in found[whole].flags


# R53 … R59: clocks and sizes


def clocks_that_differ_change_no_stored_time_and_no_order_of_parents() -> None:
    for skew in (-12 * HOUR, -SECOND, 3 * HOUR):
        records = [
            a_run()[0],
            *(msgspec.structs.replace(one, start_ns=one.start_ns + skew, end_ns=one.end_ns + skew) for one in a_run()[1:]),
        ]
        world = run_world(GRADING, records, in_order(records))
        stored = {one.span_id: (one.start_ns, one.end_ns) for one in world.store.spans["default", TRACE].values()}
        assert stored == {one.span_id: (one.start_ns, one.end_ns) for one in records}
        ((head, *_),) = [one.run.steps for one in live(world)]
        assert head.span_id == records[0].span_id


def a_run_never_lasts_less_than_nothing() -> None:
    for end in (0, 1, T0 - 12 * HOUR, T0 - 1):
        (one,) = alike([agent(0, 0, None, "a", start=T0, end=end), model(0, 2, 0, "refunded", start=T0, end=end)])
        assert one.run.start_ns <= one.run.end_ns
        assert one.run.answer == "refunded"
        assert ("ends_before_start" in one.run.flags) == (end > 0)


def a_trace_of_many_spans_is_one_row_that_does_not_hold_them() -> None:
    few, many = (
        [agent(0, 0, None, "a", end=T0 + 9 * HOUR), *(span(0, n, 0, name="step") for n in range(1, size))]
        for size in (50, 32_843)
    )
    sizes = []
    for records in (few, many):
        world = run_world(grading(sampling={"rate": 0.0}), records, in_order(records))
        (row,) = [row for version in world.store.traces.values() for row in run_rows(version)]
        assert row["steps"] == len(records)
        sizes.append(len(msgspec.json.encode(row, enc_hook=str)))
    assert sizes[1] < sizes[0] + 100, "what a list or a page reads does not grow with the spans"


class Fault(NamedTuple):
    number: str
    happens: str
    check: Callable[[], None]
    """Its name says what must hold."""


FAULTS = (
    Fault("R29", "a span comes after its trace was graded", late_spans_make_new_versions_of_the_same_run),
    Fault("R31", "the root is there already", a_root_that_ended_is_waited_for_no_longer_than_a_quiet_period),
    Fault("R32, R34", "a late span of a trace that was drawn, or was not", late_spans_never_change_the_draw),
    Fault("R35", "handing over waits for more to come in", handing_over_never_waits_for_what_waits_for_it),
    Fault("R37", "three processes, one trace id, three roots", other_roots_of_a_trace_overwrite_nothing),
    Fault("R38", "each span names another environment", what_is_said_of_a_run_does_not_depend_on_who_came_first),
    Fault("R40", "a span in the middle never comes", a_span_below_one_that_never_came_is_part_of_the_run_and_flagged),
    Fault("R41", "orphans, spans that are their own parent, cycles", no_span_vanishes_however_its_parents_hang),
    Fault("R43", "the root is dropped by its SDK", without_its_root_a_run_closes_when_idle_and_is_incomplete),
    Fault(
        "R44", "the agent is killed: no root, or one without an end", a_run_that_was_killed_is_over_some_day_and_nobody_says_why
    ),
    Fault("R46, R47", "spans are delivered again, in any order", what_comes_again_or_at_once_is_counted_once),
    Fault("R49, R50", "two projects use the same ids", the_same_ids_in_two_projects_are_two_runs_with_nothing_in_common),
    Fault("R52", "a hop keeps 64 bits of the trace id", a_trace_whose_id_was_cut_on_the_way_is_another_trace_and_flagged),
    Fault("R53", "machines tell the time differently", clocks_that_differ_change_no_stored_time_and_no_order_of_parents),
    Fault("R55, R56", "spans end before they start, by hours, or never", a_run_never_lasts_less_than_nothing),
    Fault("R58, R59", "32,843 spans in one trace", a_trace_of_many_spans_is_one_row_that_does_not_hold_them),
)


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{one.number}: {one.happens}" for one in FAULTS])
def test_what_must_hold(fault: Fault) -> None:
    fault.check()
