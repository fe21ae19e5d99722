"""The benchmark of shapes: a run of 10,000 spans, and a trace that is open for six hours. What a span costs its owner, from first to last.

``make bench`` runs it. Receiving and storing a span is measured elsewhere and knows nothing of traces; here is what does: reading it, keeping
it, looking at its trace, grading the run in the end. Work that grew with history, or memory, would show in the last line of a table.
"""

import argparse
import asyncio
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec
from assembly_law import grading
from worlds import T0, World, agent, model, tool

from pipeline.model.span import Span, seal
from pipeline.model.time import HOUR, SECOND

GRADING = grading(sampling={"rate": 0.0})
START = T0 + 30 * SECOND


class Line(msgspec.Struct):
    """What the spans of one line of a table cost, each: time in µs, and memory in bytes that is still held."""

    name: str
    time_us: float
    held: float


def a_call(number: int, at: int) -> Span:
    """The work of an agent that has not ended: its model, its tools, and once in sixty spans a sub-agent that was called as a tool."""
    times = {"start": at - 2 * SECOND, "end": at - SECOND, "received": at}
    if number % 60 == 58:
        return agent(0, number, number + 1, "helper", **times)
    if number % 60 == 59:
        return tool(0, number, 0, "ask", fails=False, **times)
    return (
        model(0, number, 0, f"step {number}", **times)
        if number % 2
        else tool(0, number, 0, "look", fails=number % 50 == 0, **times)
    )


def a_run(spans: int) -> Iterator[Span]:
    """A run of so many spans within some seconds, its root last."""
    received = START + SECOND
    for number in range(1, spans):
        yield seal(msgspec.structs.replace(a_call(number, START), received_ns=received))
    yield agent(0, 0, None, "a", start=START - HOUR, end=START, received=received)


def a_long_trace(hours: int) -> Iterator[Span]:
    """A span a second for hours, the root last."""
    for second in range(1, hours * 3600):
        yield a_call(second, START + second * SECOND)
    end = START + hours * HOUR
    yield agent(0, 0, None, "a", start=START, end=end, received=end)


async def measured(spans: Callable[[], Iterator[Span]], size: int, name: str, *, memory: bool) -> tuple[list[Line], float, World]:
    """Hand spans to an owner as their clock says. Returns a line for each ``size`` of them, and what grading the run cost a span, in µs."""
    world, lines, began = World(GRADING), [], 0
    total = 0
    if memory:
        tracemalloc.start()
    for number, some in enumerate(pieces(spans(), size), 1):
        started = time.perf_counter()
        for span in some:
            world.now = max(world.now, span.received_ns)
            await world.owner.fold([span], world.times)
            await world.owner.tick(world.times)
        spent = time.perf_counter() - started
        held = tracemalloc.get_traced_memory()[0] if memory else 0
        lines.append(Line(f"{name} {number}", 1e6 * spent / len(some), (held - began) / len(some)))
        began, total = held, total + len(some)
    started = time.perf_counter()
    world.now += 20 * SECOND
    await world.owner.tick(world.times)
    graded = 1e6 * (time.perf_counter() - started) / total
    if memory:
        tracemalloc.stop()
    (run,) = world.store.live_runs()
    if len(run.run.steps) != total or world.owner.open_traces:
        raise AssertionError(
            f"{len(run.run.steps)} of {total} spans are in the run; {world.owner.open_traces} traces are still held"
        )
    return lines, graded, world


def pieces(spans: Iterator[Span], size: int) -> Iterator[list[Span]]:
    """Make the spans before they are handed in, so that making them is not measured."""
    while piece := list(islice(spans, size)):
        yield piece


async def table(title: str, spans: Callable[[], Iterator[Span]], size: int, name: str) -> None:
    """Print what a shape costs: first the time, then, in a run of its own that is slower for it, the memory."""
    timed, graded, _ = await measured(spans, size, name, memory=False)
    held, _, _ = await measured(spans, size, name, memory=True)
    sys.stdout.write(f"\n{title}\n{'':12} {'µs a span':>10} {'bytes held':>11}\n")
    for one, other in zip(timed, held, strict=True):
        sys.stdout.write(f"{one.name:12} {one.time_us:10.1f} {other.held:11.0f}\n")
    sys.stdout.write(f"{'last / first':12} {timed[-1].time_us / timed[0].time_us:10.2f} {held[-1].held / held[0].held:11.2f}\n")
    sys.stdout.write(f"grading the run: {graded:.1f} µs a span; held of it after that: nothing\n")


async def main(spans: int, hours: int) -> None:
    """Measure and print."""
    await measured(lambda: a_run(1000), 1000, "", memory=False)  # what is made once is made before
    await table(f"A run of {spans} spans, by thousands", lambda: a_run(spans), 1000, "thousand")
    _, small, _ = await measured(lambda: a_run(1000), 1000, "", memory=False)
    sys.stdout.write(f"(grading a run of 1000 spans: {small:.1f} µs a span)\n")
    await table(f"A trace that is open for {hours} hours, a span a second, by hours", lambda: a_long_trace(hours), 3600, "hour")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=10_000)
    parser.add_argument("--hours", type=int, default=6)
    arguments = parser.parse_args()
    asyncio.run(main(arguments.spans, arguments.hours))
