"""A load held: half of what this machine can do, for minutes, with memory, open files and lag once a minute. They must be flat.

``make held`` runs it: a real broker, a ClickHouse front, one collector and two workers, the product's own commands. What they can do is
measured first, in the same run and through the same collector.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import aiohttp
import msgspec
from clickhouse_front import Front
from cluster import Cluster, Process
from kafka_broker import Broker

from pipeline.apps.bench import load
from pipeline.runtime.clock import SystemClock
from sinks.clickhouse.store import Store

SHARE: Final = 0.5
REQUEST: Final = load.TRACES_A_REQUEST * load.SPANS
"""Spans of a request."""
MORE: Final = """
assemble: {quiet_period: 1s}
gates: []
"""
PROJECT: Final = "bench"
HEADERS: Final = {"Content-Type": "application/x-protobuf"}


class Look(msgspec.Struct, frozen=True):
    """What one minute came to."""

    minute: int
    sent: int
    """Spans in this minute, all of them acknowledged."""
    lag: int
    """Records that some stage has not acknowledged."""
    processes: tuple[tuple[str, int, int], ...]
    """Name, resident memory in MiB, open files."""

    def line(self) -> str:
        """Return it as a line of a table."""
        parts = "   ".join(f"{name} {memory:>4} MiB {files:>3} files" for name, memory, files in self.processes)
        return f"minute {self.minute:>2}   {self.sent:>9,} spans   lag {self.lag:>4}   {parts}"


def resources(process: Process) -> tuple[int, int]:
    """Return the resident memory of a process in MiB, and its open files."""
    folder = Path(f"/proc/{process.pid}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
    return int(status["VmRSS"].split()[0]) // 1024, len(list((folder / "fd").iterdir()))


class Held:
    """A cluster that is sent traces that nobody sent before."""

    def __init__(self, cluster: Cluster, url: str, processes: Sequence[tuple[str, Process]]) -> None:
        self._cluster = cluster
        self._url = f"{url}/v1/traces"
        self._processes = processes
        self.traces = 0

    def _bodies(self, requests: int) -> Iterator[bytes]:
        for _ in range(requests):
            (body,) = load.requests(load.TRACES_A_REQUEST, SystemClock().now(), self.traces)
            self.traces += load.TRACES_A_REQUEST
            yield body

    async def most(self, store: Store, requests: int) -> float:
        """Return the spans a second from the first request to the last stored score, as fast as it goes."""
        bodies = self._bodies(requests)

        async def one(session: aiohttp.ClientSession) -> None:
            for body in bodies:
                await self._post(session, body)

        began = time.perf_counter()
        async with aiohttp.ClientSession() as session:
            await asyncio.gather(*(one(session) for _ in range(4)))
        await self.done(store)
        return requests * REQUEST / (time.perf_counter() - began)

    async def hold(self, spans_a_second: float, minutes: int) -> list[Look]:
        """Send at this rate, and look once a minute."""
        looks = []
        began = time.perf_counter()
        async with aiohttp.ClientSession() as session:
            for minute in range(1, minutes + 1):
                sent = 0
                while (ahead := (minute - 1) * 60 + sent / spans_a_second) < minute * 60:
                    await asyncio.sleep(max(0.0, began + ahead - time.perf_counter()))
                    for body in self._bodies(1):
                        await self._post(session, body)
                    sent += REQUEST
                looks.append(await self._look(minute, sent))
                sys.stdout.write(f"{looks[-1].line()}\n")
                sys.stdout.flush()
        return looks

    async def _post(self, session: aiohttp.ClientSession, body: bytes) -> None:
        async with session.post(self._url, data=body, headers=HEADERS) as answer:
            answer.raise_for_status()

    async def _look(self, minute: int, sent: int) -> Look:
        backlog = await asyncio.to_thread(self._cluster.backlog)
        return Look(minute, sent, sum(backlog.values()), tuple((name, *resources(one)) for name, one in self._processes))

    async def done(self, store: Store) -> None:
        """Wait until every trace that was sent is a graded run."""
        while (found := await store.accounting(PROJECT)).received < self.traces or found.open_traces:  # noqa: ASYNC110 - others work
            await asyncio.sleep(0.2)


async def run(minutes: int, requests: int, rate: float) -> None:
    """Measure what goes at most, hold a share of it, and see that everything that was acknowledged became a graded run."""
    with TemporaryDirectory(prefix="tracegrade-held-", ignore_cleanup_errors=True) as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "store").mkdir()
        broker = stack.enter_context(Broker())
        front = stack.enter_context(Front(folder / "store"))
        cluster = Cluster(broker, front, folder, more=MORE, project=PROJECT)
        collector, url, _ = stack.enter_context(cluster.collector())
        workers = [stack.enter_context(cluster.worker()) for _ in range(2)]
        for one in workers:
            await asyncio.to_thread(one.says, "working")
        await asyncio.to_thread(cluster.shared_by, 2)
        held = Held(cluster, url, [("collector", collector), *(("worker", one) for one in workers)])
        async with cluster.store() as store:
            most = await held.most(store, requests)
            rate = rate or most * SHARE
            sys.stdout.write(f"at most {most:,.0f} spans/s from request to stored scores; held: {rate:,.0f}\n")
            await held.hold(rate, minutes)
            await held.done(store)
        sys.stdout.write(f"all {held.traces * load.SPANS:,} spans are in {held.traces:,} graded runs\n")


def main() -> None:
    """Hold a load and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--requests", type=int, default=200, help="requests of 100 spans for the measurement before")
    parser.add_argument("--rate", type=float, default=0.0, help="spans a second; half of what was measured where not given")
    asked = parser.parse_args()
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    asyncio.run(run(asked.minutes, asked.requests, asked.rate))


if __name__ == "__main__":
    main()
