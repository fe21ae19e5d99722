"""The laws of assembly as functions, so that the product can be held to them and mutants can be seen to break them."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st
from worlds import T0, Action, World, agent, in_order, log_records, results_of, run_world, runs_of, traces, windows_of

from pipeline.config.grading import grading_of
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.evidence import Evidence
from pipeline.model.ids import run_id
from pipeline.model.result import Feedback, Judgment
from pipeline.model.run import RunClass
from pipeline.model.time import DAY, MINUTE, SECOND
from pipeline.model.topology import Record
from pipeline.stages.grade import Grading

LEDGER = {
    "name": "on_the_ledger",
    "source": "ledger",
    "each": "refund",
    "key": {"id": "arguments.id"},
    "identity": {"id": "arguments.id"},
    "state": {"state": {"equals": "done"}},
}
"""A check of what a record source says of each refund."""


def grading(**agent_settings: Any) -> Grading:
    """The product's default grading, with a judge and half of the runs sampled; ``ledger`` is a record source."""
    configured = TracegradeSettings.model_validate(
        {
            "judge": {"base_url": "http://127.0.0.1:1/v1", "model": "scripted", "uncalibrated": "decide"},
            "records": {"ledger": {"http": {"url": "https://ledger.example.com/refunds/{id}"}}},
            "agents": {"default": {"sampling": {"rate": 0.5}, **agent_settings}},
        }
    )
    return grading_of(configured)("default", "a")


GRADING = grading(checks={"records": [LEDGER]})


@st.composite
def facts(draw: st.DrawFn) -> list[Record]:
    """The spans of one or two traces, what was logged for them, and perhaps feedback; some of it received twice, at different times."""
    records: list[Record] = []
    for trace in range(draw(st.integers(1, 2))):
        records.extend(draw(traces(trace)))
        records.extend(draw(log_records(trace)))
        if draw(st.booleans()):
            trace_id = f"{trace + 1:032x}"
            # On all of the trace, or on a run that may be merged into another one or never be.
            run = draw(st.sampled_from(["", *(run_id("default", trace_id, f"{index + 1:016x}") for index in (0, 1, 60))]))
            records.append(Feedback("default", trace_id, f"f{trace}", -1.0, run, received_ns=T0))
    return records + [_again(draw, record) for record in draw(st.lists(st.sampled_from(records), max_size=2))]


@st.composite
def received_again(draw: st.DrawFn) -> list[Record]:
    """The spans of a trace, one or two of them received twice, at different times."""
    records: list[Record] = [*draw(traces(0))]
    return records + [_again(draw, record) for record in draw(st.lists(st.sampled_from(records), min_size=1, max_size=2))]


def _again(draw: st.DrawFn, record: Record) -> Record:
    """The same fact as another delivery of it: received at another time, by another collector whose clock may be behind, or from a dead letter."""
    assert not isinstance(record, Judgment | Evidence)
    apart = draw(st.sampled_from([-DAY, -MINUTE, -5 * SECOND, 5 * SECOND]))
    return msgspec.structs.replace(record, received_ns=record.received_ns + apart)


def seen(world: World) -> dict[str, Any]:
    """All that a reader can see, apart from versions and times of arrival."""
    return {"runs": runs_of(world), "results": results_of(world), "windows": windows_of(world)}


def assert_schedule_changes_nothing(records: Sequence[Record], schedule: Sequence[Action], using: Grading = GRADING) -> None:
    """The law: whatever the schedule, the rows are those of the plainest one."""
    assert seen(run_world(using, records, schedule)) == seen(run_world(using, records, in_order(records)))


def assert_an_earlier_receipt_moves_a_run() -> None:
    """A run without an end counts when it was first heard of, also where that turns out late, and its owner dies before it wrote so."""
    late = agent(0, 0, None, "a", end=0, received=T0 + 70 * SECOND)
    first = msgspec.structs.replace(late, received_ns=T0)

    async def play() -> World:
        world = World(GRADING)
        await world.arrive([late])
        await world.wait(3600)
        (before,) = world.store.live_runs()
        assert before.run.place.minute_ns == T0 + 70 * SECOND
        await world.arrive([first])
        await world.crash()
        await world.settle()
        return world

    (run,) = asyncio.run(play()).store.live_runs()
    assert (run.run.first_received_ns, run.run.place.minute_ns) == (T0, T0 - 50 * SECOND)


def assert_accounting(world: World) -> None:
    """Every live run is in exactly one class, and in exactly one place: each of its dimensions counts once."""
    live = world.store.live_runs()
    classes = Counter(run.run_class for run in live)
    assert sum(classes[one] for one in RunClass) == len(live)
    ids = {run.run.run_id for run in live}
    counted = Counter((row.key.run_id, row.key.dimension) for row in world.store.counting())
    assert all(run_id in ids for run_id, _ in counted)
    assert not [key for key, times in counted.items() if times > 1]
