"""Judged: the embedded pipeline in this process, sixty times as fast as the clock on the wall, with a judge to which faults are done.

What follows from the runs that were sent and from what the judge sent off is reckoned here by hand, beside the product.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, Self, cast

import msgspec
import pytest
from faults.judge_door import Door, FaultyJudge, Told
from faults.ledger import Ledger, Sent
from faults.load import WHOLE, Sender
from ruamel.yaml import YAML

from pipeline.apps.compose import Product
from pipeline.apps.demo.receiver import Pager
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.judges.scripted import Asked, Canned
from pipeline.judges.votes import VoteState
from pipeline.model.result import Kind, Outcome, Unresolved
from pipeline.runtime.telemetry import Metric
from sinks.clickhouse.run_detail import RunDetail, UnknownRunError
from sinks.clickhouse.store import Store

FASTER: Final = 60
"""How many times as fast as on the wall the time of the pipeline goes."""
BEATS_S: Final = 0.25
"""Pauses up to this one are beats of loops and stay as they are; longer ones are waits, and go as fast as the time."""
PATIENCE_S: Final = 120.0
JUDGED: Final = ("correctness", "completeness", "policy_and_safety", "format", "tone")
"""The judged dimensions of the rubric support; correctness and policy_and_safety have a gate, and so three votes."""
CONFIG: Final = """
project: faults
receiver: {http_port: 0, grpc_port: 0}
judge:
  model: scripted-judge-1
  timeout: 20s
  connect_timeout: 5s
  deadline: 240m
  uncalibrated: decide
  price: {input_per_million: 0.75, output_per_million: 2.55}
agents:
  default: {checks: {policies: [{name: no_deletion, forbid: {tool: delete_customer}}]}}
gates: [{name: no-deletions, kind: hard, dimensions: [no_deletion], quiet: 1000h}]
"""


class FastClock:
    """Begins with the wall's time and goes on faster."""

    def __init__(self) -> None:
        self._began = time.time_ns()
        self._at = time.monotonic_ns()

    def now(self) -> int:
        """Return the time."""
        return self._began + (time.monotonic_ns() - self._at) * FASTER


class Judged:
    """A running pipeline, its judge, and what both are held to."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, *, gates: Any = None, **judge: Any) -> None:
        self.judge = FaultyJudge()
        self.pager = Pager()
        self.ledger = Ledger()
        self.clock = FastClock()
        self._written: dict[str, Any] = YAML(typ="safe").load(CONFIG)
        self._written["store"] = {"path": folder / "data"}
        self._written["judge"] |= judge
        self._written["gates"] = gates or self._written["gates"]
        self._stack = AsyncExitStack()
        self._agents = 0
        self.longest_beat_s = 0.0
        self.beats: Counter[str] = Counter()
        self.held_back: Counter[str] = Counter()
        """Beats during which no judgments were asked for, by fault."""
        self.fault = ""
        self._sleep = asyncio.sleep
        patch.setattr(asyncio, "sleep", self._faster)

    async def _faster(self, seconds: float, result: Any = None) -> Any:
        return await self._sleep(seconds if seconds <= BEATS_S else max(seconds / FASTER, 0.01), result)

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.judge)
        await self._stack.enter_async_context(self.pager)
        self._written["judge"]["base_url"] = self.judge.url
        self._written["alerts"] = [{"name": "pager", "webhook": self.pager.url}]
        self.settings = TracegradeSettings.model_validate(self._written)
        self.store = await asyncio.to_thread(Store.open, self.settings.store)
        self._stack.push_async_callback(self.store.close)
        self.product = await self._stack.enter_async_context(Product(self.settings, self.store, self.clock))
        self.sender = Sender(self.product.served.http_url, self.ledger)
        beat = asyncio.create_task(self._beat())
        self._stack.callback(beat.cancel)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _beat(self) -> None:
        """The loop that polls and the loops that grade share one thread here, and go on as long as this one does."""
        while True:
            began = time.monotonic()
            await self._sleep(0.02)
            self.longest_beat_s = max(self.longest_beat_s, time.monotonic() - began - 0.02)
            self.beats[self.fault] += 1
            self.held_back[self.fault] += int(self.product.telemetry.snapshot()[Metric.JUDGE_HELD_BACK])

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        """Wait until something holds."""
        until = time.monotonic() + PATIENCE_S
        while not await holds():
            assert time.monotonic() < until, f"{self.fault or 'all well'}: {what} never came"
            assert self.product.pipeline.failed is None, self.product.pipeline.failed
            await self._sleep(0.02)

    async def send(self, count: int) -> list[Sent]:
        """Send runs, of which the first one deletes a customer: an agent that nobody heard of, so that one alert is due."""
        self._agents += 1
        sent = [
            self.ledger.trace(f"agent-{self._agents}", fails=number == 0, ended_ns=self.clock.now()) for number in range(count)
        ]
        for one in sent:
            await asyncio.to_thread(self.sender.send, one, *WHOLE)
        return sent

    async def suffers(
        self, name: str, fault: Callable[[Asked], Canned | None] | None = None, door: Door = Door.OPEN, runs: int = 2
    ) -> None:
        """Have a fault done while runs come in; code gates trip meanwhile. Then the judge is well again and nothing stays pending."""
        self.fault = name
        self.judge.fault = fault or (lambda _: None)
        await self.judge.becomes(door)
        asked = self.judge.calls
        sent = await self.send(runs)
        await self.until(self.all_told, "the alert of a check in code")
        await self.until(self._is_hit(sent, asked, door), "a call that met the fault")
        self.judge.fault = lambda _: None
        await self.judge.becomes(Door.OPEN)
        await self.until(self.nothing_is_pending, "the end of what is pending")
        self.fault = ""

    async def hears(self, fault: Callable[[Asked], Canned | None], runs: int) -> None:
        """Have nothing but this answered about these runs."""
        self.judge.fault = fault
        await self.send(runs)
        await self.until(self.nothing_is_pending, "the end of what is pending")

    def _is_hit(self, sent: list[Sent], asked: int, door: Door) -> Callable[[], Awaitable[bool]]:
        async def hit() -> bool:
            if door is Door.OPEN:
                return self.judge.calls > asked
            votes = [vote for one in sent for vote in (await self.detail(one)).votes]
            return any(vote.state is VoteState.FAILED for vote in votes)

        return hit

    async def all_told(self) -> bool:
        """Whether every alert that is due arrived."""
        return self.ledger.due() <= set(self.pager.told)

    def has_read_a_window_of(self, gate: str) -> Callable[[], Awaitable[bool]]:
        """Whether a rate gate has read a window that was final."""

        async def read() -> bool:
            return any(state.gate == gate and state.last_window_ns for state in await self.store.gate_states())

        return read

    async def nothing_is_pending(self) -> bool:
        """Whether every run is there and decided."""
        accounting = await self.store.accounting("faults")
        return accounting.received == len(self.ledger.traces) and not accounting.pending and not accounting.open_traces

    async def detail(self, sent: Sent) -> RunDetail:
        """Everything that is known of a run; before it is stored it is nothing."""
        try:
            return await self.store.run_detail("faults", sent.run_id)
        except UnknownRunError:
            return cast("RunDetail", _NOTHING)

    # The reckoning

    @property
    def expected(self) -> dict[str, int]:
        """What judged dimensions come to where the judge came to answer all questions by its rules, which know no answer to some."""
        said = Counter("unresolved(insufficient_evidence)" if one is None else "scored" for one in self.judge.said.values())
        return dict(sorted(said.items()))

    async def reckoned(self, *, bought_twice: int = 0) -> dict[str, int]:
        """Hold all that must hold when nothing is pending. Returns what every judged dimension came to, counted.

        ``bought_twice`` is how many verdicts may have been bought twice beyond those that the rows say were lost.
        """
        counts: Counter[str] = Counter()
        lost: Counter[Told] = Counter()
        for sent in self.ledger.traces.values():
            detail = await self.detail(sent)
            counts += self._accounted(sent, detail)
            for vote in detail.votes:
                assert vote.state is not VoteState.INTENT, f"what became of {vote.key} was never kept"
                lost[_told(sent, vote.key.dimension, self._seed(vote.key.dimension, vote.key.vote))] += vote.lost
        accounting = await self.store.accounting("faults")
        parts = accounting.judged + accounting.unsampled + sum(accounting.unresolved.values()) + accounting.pending
        assert accounting.received == parts == len(self.ledger.traces), accounting
        assert set(self.pager.told) == self.ledger.due(), "somebody was told what was not due, or not what was"
        twice = {told: (count, lost[told]) for told, count in self.judge.verdicts.items() if count > 1 + lost[told]}
        assert len(twice) <= bought_twice, f"bought twice, and not counted as lost: {twice}"
        return dict(sorted(counts.items()))

    def _accounted(self, sent: Sent, detail: RunDetail) -> Counter[str]:
        """Each judged dimension has one result, with a score that the judge gave, or with a reason of the closed list."""
        judged = [one for one in detail.results if one.kind is Kind.JUDGED]
        assert sorted(one.dimension for one in judged) == sorted(JUDGED), f"{sent.order}: {judged}"
        counts: Counter[str] = Counter()
        for one in judged:
            if one.value is None:
                reason = one.reason.split(":")[0]
                assert reason in tuple(Unresolved), f"{one.dimension} of {sent.order} says {one.reason!r}"
                assert one.outcome in (Outcome.INSUFFICIENT_EVIDENCE, Outcome.GRADER_ERROR)
                counts[f"unresolved({reason})"] += 1
            else:
                given = self.judge.said.get((f"Please refund order {sent.order}.", one.dimension))
                assert one.value == given, f"{one.dimension} of {sent.order} is {one.value}, and the judge said {given}"
                counts["scored"] += 1
        (code,) = [one for one in detail.results if one.dimension == "no_deletion"]
        assert code.outcome is (Outcome.FAIL if sent.fails else Outcome.PASS)
        return counts

    def _seed(self, dimension: str, vote: int) -> int | None:
        return self.settings.judge.seeds[vote] if dimension in ("correctness", "policy_and_safety") else None


def _told(sent: Sent, dimension: str, seed: int | None) -> Told:
    return Told(f"Please refund order {sent.order}.", dimension, seed)


class _Nothing(msgspec.Struct, frozen=True):
    votes: tuple[Any, ...] = ()
    results: tuple[Any, ...] = ()


_NOTHING: Final = _Nothing()
