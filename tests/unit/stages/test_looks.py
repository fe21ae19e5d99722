"""A span costs what it costs in a short trace: all of a trace is looked at when a run may be over, and not before (docs/adr/0007)."""

from collections.abc import Callable, Iterable, Mapping

import pytest
from assembly_law import grading
from worlds import T0, World, agent, log_record, model, tool

from pipeline.model.result import Feedback
from pipeline.model.span import Span
from pipeline.model.step import Step
from pipeline.model.time import HOUR, MINUTE, SECOND
from pipeline.model.topology import Record
from pipeline.stages import assemble
from pipeline.stages.group import Group, group

GRADING = grading(sampling={"rate": 0.0})
START = T0 + 30 * SECOND


class Counted(World):
    """A world that counts how often a trace is regrouped."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(GRADING)
        self.looks = 0

        def counted(steps: Mapping[str, Step]) -> tuple[Group, ...]:
            self.looks += 1
            return group(steps)

        monkeypatch.setattr(assemble, "group", counted)

    async def hears(self, at: int, record: Record) -> None:
        """Take a record at a time, after all that was due before."""
        await self.wait((at - self.now) / SECOND)
        await self.arrive([record])
        await self.owner.tick(self.times)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


def at(second: float) -> int:
    return START + int(second * SECOND)


def a_call(second: int) -> Span:
    """A call of an agent that is still at work: of its model, or of its tool."""
    times = {"start": at(second - 2), "end": at(second - 1), "received": at(second)}
    return model(0, second, 0, f"step {second}", **times) if second % 2 else tool(0, second, 0, "look", fails=False, **times)


def with_sub_agents(second: int) -> Span:
    """The same, and once a minute a sub-agent, then the tool that called it."""
    times = {"start": at(second - 3), "end": at(second - 1), "received": at(second)}
    if second % 60 == 58:
        return agent(0, second, second + 1, "helper", **times)
    return tool(0, second, 0, "ask", fails=False, **times) if second % 60 == 59 else a_call(second)


@pytest.mark.parametrize(("gap", "made"), [(1, a_call), (1, with_sub_agents), (11, a_call), (40, a_call)])
async def test_an_agent_that_works_for_hours_is_looked_at_when_its_root_has_come(
    gap: int, made: Callable[[int], Span], world: Counted
) -> None:
    for second in range(gap, gap * 2000, gap):
        await world.hears(at(second), made(second))
    assert world.looks <= 1, "of 2000 spans"
    assert not world.store.runs
    root = agent(0, 0, None, "a", start=START, end=at(gap * 2000), received=at(gap * 2000))
    await world.hears(at(gap * 2000), root)
    await world.wait(10)
    (run,) = world.store.live_runs()
    assert len(run.run.steps) == 2000
    assert world.looks <= 2


async def closes_after(world: Counted, records: Iterable[Record], longest: int = HOUR) -> float:
    """Seconds from the last of these records until a run is written, in a trace that was looked at before."""
    await world.hears(at(1), a_call(1))
    await world.wait(30)
    assert not world.store.runs
    began = world.now
    await world.arrive(list(records))
    while not world.store.runs and world.now < began + longest:
        await world.wait(1)
    return (world.now - began) / SECOND


async def test_a_root_that_comes_after_a_look_is_waited_for_no_longer_than_its_quiet_period(world: Counted) -> None:
    assert await closes_after(world, [agent(0, 0, None, "a", end=at(40), received=at(31))]) == pytest.approx(10, abs=10)


async def test_an_agent_whose_parent_is_unseen_gets_a_minute_and_one_below_a_tool_until_nothing_comes(world: Counted) -> None:
    sub = agent(0, 8, 9, "helper", end=at(31), received=at(31))
    assert await closes_after(world, [sub]) == pytest.approx(60, abs=2)


async def test_one_below_a_tool_waits_until_nothing_comes(world: Counted) -> None:
    sub = agent(0, 8, 9, "helper", end=at(31), received=at(31))
    assert await closes_after(world, [sub, tool(0, 9, 0, "ask", fails=False, end=at(31), received=at(31))]) == pytest.approx(
        300, abs=2
    )


@pytest.mark.parametrize(
    "record",
    [
        Feedback("default", f"{1:032x}", "f", -1.0, received_ns=at(60)),
        log_record(0, 1, "gen_ai.choice", {"message": {"content": "late"}}, received=at(60)),
        model(0, 7, 1, "late", received=at(60)),
    ],
    ids=["feedback", "a log record", "a span"],
)
async def test_what_comes_for_a_run_that_is_written_in_a_trace_that_goes_on_is_looked_at_soon(
    record: Record, world: Counted
) -> None:
    ended, at_work = agent(0, 1, None, "done", end=at(5), received=at(5)), agent(0, 5, None, "at work", end=0, received=at(5))
    await world.arrive([ended, at_work])
    await world.wait(50)
    (before,) = world.store.live_runs()
    await world.hears(at(60), record)
    await world.wait(15)
    (after,) = world.store.live_runs()
    assert after.version > before.version
    assert world.now < START + 2 * MINUTE
