"""Measure: bare decoding, the receiver, and the whole way to stored scores, in one run on one machine. Ratios travel; seconds do not."""

import asyncio
import resource
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from collectors.otlp import protobuf
from pipeline.apps.bench import load, sender
from pipeline.apps.compose import Product
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.model.time import MINUTE
from pipeline.runtime.clock import ManualClock, SystemClock
from sinks.clickhouse.store import Store

REPEATS: Final = 3
"""Of bare decoding, of which the best counts: it is the floor."""


class Report(msgspec.Struct, frozen=True):
    """What was measured, in spans a second unless named otherwise."""

    spans: int
    bytes_a_span: float
    bare_decoding: float
    """Parsing the protobuf, nothing else."""
    decoding: float
    """Parsing into sealed spans."""
    accepted: float
    """From another process over HTTP, each request answered after its durable insert."""
    scored: float
    """From the first request to the last stored score."""
    runs_scored: float
    """Runs a second."""
    peak_memory_mb: float

    def table(self) -> str:
        """Return the report as lines, each beside its ratio to the floor."""
        rows = (
            ("bare OTLP decoding (the floor)", self.bare_decoding),
            ("decoding into sealed spans", self.decoding),
            ("accepted by the receiver, durably stored", self.accepted),
            ("from OTLP to stored scores", self.scored),
        )
        lines = [f"{self.spans} spans of {self.bytes_a_span:.0f} bytes, {load.SPANS} a run"]
        lines += [f"{name:42} {rate:10,.0f} spans/s   {rate / self.bare_decoding:7.4f} of the floor" for name, rate in rows]
        lines.append(f"{'from OTLP to stored scores':42} {self.runs_scored:10,.1f} runs/s")
        lines.append(f"{'peak memory':42} {self.peak_memory_mb:10,.0f} MB")
        return "\n".join(lines)


async def measure(traces: int) -> Report:
    """Measure with so many traces of ten spans."""
    clock = ManualClock(SystemClock().now())
    bodies = load.requests(traces, clock.now())
    spans = traces * load.SPANS
    bare = max(spans / _timed_parse(bodies) for _ in range(REPEATS))
    ours = max(spans / _timed_decode(bodies, clock.now()) for _ in range(REPEATS))
    with TemporaryDirectory(prefix="tracegrade-bench-", ignore_cleanup_errors=True) as folder:
        accepting, scoring = await _through(Path(folder), bodies, clock, traces)
    return Report(
        spans=spans,
        bytes_a_span=sum(map(len, bodies)) / spans,
        bare_decoding=bare,
        decoding=ours,
        accepted=spans / accepting,
        scored=spans / scoring,
        runs_scored=spans / scoring / load.SPANS,
        peak_memory_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def _timed_parse(bodies: list[bytes]) -> float:
    began = time.perf_counter()
    for body in bodies:
        ExportTraceServiceRequest.FromString(body)
    return time.perf_counter() - began


def _timed_decode(bodies: list[bytes], now: int) -> float:
    began = time.perf_counter()
    for body in bodies:
        protobuf.decode(body, "bench", now)
    return time.perf_counter() - began


async def _through(folder: Path, bodies: list[bytes], clock: ManualClock, traces: int) -> tuple[float, float]:
    """Return seconds until all was accepted, and until all was scored."""
    settings = TracegradeSettings.model_validate(
        {"project": "bench", "store": {"path": folder / "data"}, "receiver": {"http_port": 0, "grpc_port": 0}}
    )
    sender.write(folder / "load", bodies)
    store = Store.open(settings.store)  # not on another thread, which an interrupt would leave at work in a folder that goes away
    try:
        async with Product(settings, store, clock) as product, _sending(product, folder / "load") as process:
            began = time.perf_counter()
            await process.communicate(b"go\n")
            if process.returncode:
                raise RuntimeError("a request was not accepted")
            accepting = time.perf_counter() - began
            clock.advance_to(clock.now() + MINUTE)
            await product.pipeline.settle()
            scoring = time.perf_counter() - began
            stored = (await store.accounting("bench")).received
            if stored != traces:
                raise RuntimeError(f"{stored} runs were stored of {traces}")
    finally:
        await store.close()
    return accepting, scoring


@asynccontextmanager
async def _sending(product: Product, load_file: Path) -> AsyncIterator[Process]:
    """A sender that has read its load and waits for a line; it does not outlive the context."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        sender.__file__,
        f"{product.served.http_url}/v1/traces",
        str(load_file),
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        if process.stdout is None:
            raise AssertionError("the sender has no output")
        await process.stdout.readline()
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
