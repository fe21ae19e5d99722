"""What was read is a fact like the others: a run waits for it, nobody else does, and any order of it gives the same rows (docs/adr/0008)."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence

import pytest
from assembly_law import GRADING, assert_schedule_changes_nothing, seen
from worlds import T0, Action, World, agent, in_order, ledger_says, log_record, model, run_world, tool

from pipeline.model.evidence import Evidence, Found, Question, answered
from pipeline.model.result import Outcome, Result
from pipeline.model.span import Span
from pipeline.model.time import SECOND
from pipeline.model.topology import Record
from pipeline.stages.assemble import TraceState
from pipeline.stages.turn import ASK_AGAIN


def a_refund(trace: int = 0, index: int = 1) -> list[Span]:
    return [
        agent(trace, 0, None, "a", end=T0 + 5 * SECOND),
        tool(trace, index, 0, "refund", fails=False),
        model(trace, 9, 0, "done"),
    ]


def ledger(world: World, trace: int = 0) -> Result | None:
    """What the check says of the trace's run; None while it was not graded."""
    runs = [one for one in world.store.live_runs() if one.run.trace_id == f"{trace + 1:032x}"]
    found = [result for run in runs for result in run.results if result.dimension == "on_the_ledger"]
    return found[0] if found else None


def played(play: Callable[[World], Awaitable[None]]) -> World:
    async def run() -> World:
        world = World(GRADING)
        await play(world)
        return world

    return asyncio.run(run())


def test_the_source_says_all_that_a_source_can_say() -> None:
    """Of some refund the record is there, of another one it is absent, doubled, another's, or could not be read: else the laws show nothing."""
    found = set()
    for index in range(1, 40):
        records = a_refund(index=index)
        result = ledger(run_world(GRADING, records, in_order(records)))
        assert result is not None
        found.add((result.outcome, result.reason.partition(" ")[0], "no records" in result.reason, "2 records" in result.reason))
    assert found == {
        (Outcome.PASS, "", False, False),
        (Outcome.FAIL, "ledger", True, False),
        (Outcome.FAIL, "ledger", False, True),
        (Outcome.INSUFFICIENT_EVIDENCE, "record_not_read:", False, False),
    }


def test_a_run_is_graded_when_its_reads_are_answered_and_no_other_trace_waits_for_that() -> None:
    async def play(world: World) -> None:
        await world.arrive([*a_refund(0), agent(1, 0, None, "a"), model(1, 2, 0, "hello")])
        await world.wait(60)
        assert [one.run.trace_id for one in world.store.live_runs()] == [f"{2:032x}"]
        assert (f"{1:032x}") in {trace for _, trace in await world.store.unfinished()}
        await world.read()
        await world.wait(1)

    world = played(play)
    assert len(world.store.live_runs()) == 2
    assert ledger(world) is not None


def test_the_other_runs_of_its_trace_are_written_meanwhile() -> None:
    records = [agent(0, 0, 50, "a"), model(0, 2, 0, "hello"), agent(0, 3, 50, "b"), tool(0, 4, 3, "refund", fails=False)]

    async def play(world: World) -> None:
        await world.arrive(records)
        await world.wait(400)

    assert [one.run.place.cohort.agent for one in played(play).store.live_runs()] == ["a"]
    assert_schedule_changes_nothing(records, [Action("arrive", records=(0, 1, 2, 3), seconds=400), Action("crash", seconds=400)])


def test_a_question_that_was_lost_is_asked_again() -> None:
    async def play(world: World) -> None:
        await world.arrive(a_refund())
        await world.wait(60)
        (first,) = world.reads
        world.reads.clear()
        await world.wait(ASK_AGAIN / SECOND)
        assert world.reads == [first]
        await world.crash()
        await world.wait(60)
        assert world.reads == [first]
        await world.settle()

    assert ledger(played(play)) is not None


@pytest.mark.parametrize("crash", [False, True])
def test_a_late_call_has_the_source_asked_anew_and_the_old_row_stands_until_then(crash: bool) -> None:
    again = tool(0, 4, 0, "refund", fails=False)

    async def play(world: World) -> None:
        await world.arrive(a_refund())
        await world.wait(60)
        await world.read()
        await world.wait(60)
        before = seen(world)
        await world.arrive([again])
        await world.wait(60)
        if crash:
            await world.crash()
            await world.wait(60)
        assert len({one.key for one in world.reads}) == 2
        assert seen(world) == before
        await world.settle()

    world = played(play)
    assert len(world.store.evidence["default", f"{1:032x}"]) == 3, (
        "what was read before the late call is kept, and counts no more"
    )
    records = [*a_refund(), again]
    late = [
        Action("arrive", records=(0, 1, 2), seconds=60),
        Action("read", seconds=60),
        Action("arrive", records=(3,), seconds=60),
    ]
    assert seen(world) == seen(run_world(GRADING, records, in_order(records)))
    assert_schedule_changes_nothing(records, late)


def test_what_comes_late_and_is_no_call_has_nothing_asked_anew() -> None:
    async def play(world: World) -> None:
        await world.arrive(a_refund())
        await world.wait(60)
        await world.read()
        await world.wait(60)
        await world.arrive([model(0, 5, 0, "and more"), log_record(0, 9, "gen_ai.choice", {"message": {"content": "x"}})])
        await world.wait(60)
        assert world.reads == []
        assert len(world.store.live_runs()[0].run.steps) == 4

    played(play)


def two_answers(question: Question) -> list[Evidence]:
    """Two owners asked, and the record was made in between."""
    absent = answered(question, Found.ABSENT, T0 + 60 * SECOND)
    return [absent, answered(question, Found.RECORD, T0 + 61 * SECOND, body='[{"id": 1, "state": "done"}]')]


def outcomes_of_two_answers() -> set[Outcome | None]:
    outcomes = set()
    for order, crash in itertools.product(([[0], [1]], [[1], [0]], [[1, 0]], [[0, 1]], [[1], [0], [1]]), (False, True)):

        async def play(world: World, order: Sequence[Sequence[int]] = order, crash: bool = crash) -> None:
            await world.arrive(a_refund())
            await world.wait(60)
            answers = two_answers(world.reads.pop())
            for batch in order:
                await world.arrive([answers[index] for index in batch])
                await world.wait(5)
                if crash:
                    await world.crash()
            await world.settle()

        result = ledger(played(play))
        assert result is not None
        outcomes.add(result.outcome)
    return outcomes


def test_of_two_answers_the_earlier_counts_whichever_comes_first_and_whoever_dies() -> None:
    assert outcomes_of_two_answers() == {Outcome.FAIL}


def _what_comes_first_counts(patch: pytest.MonkeyPatch) -> None:
    add_evidence = TraceState.add_evidence

    def add(self: TraceState, evidence: Evidence) -> bool:
        return evidence.id not in self.evidence and add_evidence(self, evidence)

    patch.setattr(TraceState, "add_evidence", add)


def test_an_owner_that_takes_what_comes_first_breaks_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    _what_comes_first_counts(monkeypatch)
    assert outcomes_of_two_answers() != {Outcome.FAIL}


def test_evidence_of_a_run_that_was_merged_is_kept_and_counts_for_nobody() -> None:
    records: list[Record] = [
        agent(0, 1, 0, "sub"),
        tool(0, 2, 1, "refund", fails=False),
        agent(0, 0, None, "a"),
        model(0, 3, 0, "done"),
    ]
    apart = [
        Action("arrive", records=(0, 1), seconds=400),
        Action("read", seconds=60),
        Action("arrive", records=(2, 3), seconds=120),
    ]
    world = run_world(GRADING, records, apart)
    stored = world.store.evidence["default", f"{1:032x}"].values()
    assert len({one.run_id for one in stored}) == 2
    (run,) = world.store.live_runs()
    assert run.run.place.cohort.agent == "a"
    assert_schedule_changes_nothing(records, apart)
    assert {ledger_says(one).found for one in stored} == {one.found for one in stored}
