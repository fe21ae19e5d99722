"""Accounted: traffic of all kinds through a running installation, the accounts watched meanwhile and compared with what was known beforehand."""

import heapq
import http.client
import itertools
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from clickhouse_front import Front
from cluster import PATIENCE_S, Process
from faults.accounts import Accounts, Class
from faults.kinds import ASKED_AGAIN, CONFIG, PROJECTS, RATE, JudgeOfKinds, Kind, Trace, Traffic
from faults.lasting import lasting
from faults.load import LATE_S, RETRYABLE
from faults.outside import Outside
from serving import eventually

from pipeline.config.store import StoreSettings
from pipeline.runtime.clock import SystemClock
from sinks.clickhouse.board import accounting
from sinks.clickhouse.connection import connect

KEYS: Final = {project: f"key-of-{project}" for project in PROJECTS}
RECEIVER: Final = ", keys: {" + ", ".join(f"{project}: [{key}]" for project, key in KEYS.items()) + "}"
"""What is added to the section of the receiver."""
EMBEDDED: Final = """
store: {{url: "{store}", database: {database}}}
receiver: {{http_port: 0, grpc_port: 0{receiver}}}
"""
_ENDED: Final = "SELECT trace_id, class, class_reason FROM {database}.runs FINAL WHERE state = 'live'"
_MOVED: Final = "SELECT uniqExact(run_id) FROM {database}.places FINAL"
_PLACES: Final = "SELECT count() FROM {database}.places FINAL"
_MERGED: Final = "SELECT count() FROM {database}.runs FINAL WHERE merged_into != ''"


def configured(judge: str, deadline_s: int, rubric: str | Path = "support") -> str:
    """What of the configuration is the same for both runtimes."""
    return CONFIG.format(judge=judge, rate=RATE, deadline=f"{deadline_s}s", rubric=rubric)


@contextmanager
def an_embedded(front: Front, settings: StoreSettings, folder: Path, more: str, sabotage: str = "") -> Iterator[str]:
    """``tracegrade up`` on the front, and its address."""
    config = folder / "tracegrade.yaml"
    config.write_text(EMBEDDED.format(store=front.url, database=settings.database, receiver=RECEIVER) + more)
    module, environment = ("faults.sabotage", {"SABOTAGE": sabotage, **_PATH}) if sabotage else ("pipeline.apps", {})
    with Process("up", "-c", str(config), environment=environment, module=module) as process:
        yield process.says("up")["http"]
        assert process.stop() == 0, process.tail()


_PATH: Final = {"PYTHONPATH": f"{Path(__file__).parents[2]}:{Path(__file__).parents[1]}"}


def play(url: str, traffic: Traffic, traces: int, traces_per_s: float) -> None:
    """Send so many traces, and what comes late of them when their runs are closed."""
    later: list[tuple[float, int, Trace, dict[str, Any]]] = []
    order = itertools.count()
    while len(traffic.traces) < traces or later:
        if len(traffic.traces) < traces:
            trace = traffic.next(SystemClock().now())
            first, *rest = trace.requests()
            post(url, trace.project, first)
            for one in rest:
                heapq.heappush(later, (time.monotonic() + LATE_S, next(order), trace, one))
        while later and later[0][0] < time.monotonic():
            _, _, trace, request = heapq.heappop(later)
            post(url, trace.project, request)
        lasting(1 / traces_per_s)


def post(url: str, project: str, request: dict[str, Any]) -> None:
    """Send a request until it is taken."""
    at = urlsplit(url)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEYS[project]}"}

    def taken() -> bool:
        connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=30)
        try:
            connection.request("POST", "/v1/traces", json.dumps(request).encode(), headers)
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        assert answer.status == http.client.OK or answer.status in RETRYABLE, said
        return answer.status == http.client.OK

    eventually(taken)


class Accounted:
    """A front with an installation on it, a judge of kinds, and the watch over its accounts."""

    def __init__(self, front: Front, settings: StoreSettings, judge: JudgeOfKinds, traffic: Traffic | None = None) -> None:
        self.accounts = Accounts(front, settings, PROJECTS)
        self.traffic = traffic or Traffic()
        self._front, self._settings, self._judge = front, settings, judge

    def run(self, url: str, *, traces: int, traces_per_s: float, within_s: float = PATIENCE_S) -> None:
        """Play, and wait until every run is where it ends; the watch looks on all the time."""
        with self.accounts:
            play(url, self.traffic, traces, traces_per_s)
            eventually(self._at_rest, within_s, lambda: f"not where they end: {self.wrong()[:5]}\n{self.accounts.tell()}")

    def _at_rest(self) -> bool:
        with closing(connect(self._settings, {})) as database:
            still = not any(accounting(database, project).open_traces for project in PROJECTS)
        return still and not self.wrong()

    def wrong(self) -> list[str]:
        """Return the runs that are not in the class that was known beforehand, and those that are not there."""
        found = {trace_id: (name, reason) for trace_id, name, reason in self._rows(_ENDED)}
        return [
            f"{one.kind} {one.sent.trace_id}: {found.get(one.sent.trace_id)}, not {one.ends}"
            for one in self.traffic.traces
            if found.get(one.sent.trace_id) not in one.ends
        ]

    def _rows(self, sql: str) -> list[tuple[str, ...]]:
        return self._front.look(sql.format(database=self._settings.database))

    def hold(self) -> None:
        """Hold that nothing was ever broken, that nobody was asked what was answered, and that there was something to hold."""
        print(f"\n{self.tell()}")  # noqa: T201 - that is what it is for
        assert not self.accounts.broken, self.accounts.broken[:5]
        often = {question: times for question, times in self._judge.answered.items() if times > ASKED_AGAIN}
        assert not often, f"the judge was asked again what it had answered: {often}"
        missing = self.expected() - set(self.accounts.seen)
        assert not missing, f"nobody was ever in {missing}"
        assert self.accounts.scores, "there was no score to hold"
        if Kind.MOVED in {one.kind for one in self.traffic.traces}:
            ((places,),), ((runs,),) = self._rows(_PLACES), self._rows(_MOVED)
            assert int(places) > int(runs), "no run moved"
        if Kind.MERGED in {one.kind for one in self.traffic.traces}:
            assert self._rows(_MERGED) != [("0",)], "no run was merged into another"

    def expected(self) -> set[Class]:
        """Return the classes that somebody must have been in at some time: those that the kinds end in, and pending."""
        return {("pending", "")}.union(*(trace.certain for trace in self.traffic.traces))

    def tell(self) -> str:
        """Return what was sent, and what was seen."""
        sent = Counter(one.kind.value for one in self.traffic.traces)
        now = self.accounts.now()
        unresolved = {reason: runs for (name, reason), runs in now.items() if name == "unresolved"}
        line = (
            f"{now.total()} received = {now['judged', '']} judged + {now['unsampled', '']} unsampled + {sum(unresolved.values())} "
            f"unresolved {unresolved} + {now['pending', '']} pending"
        )
        asked = f"{self._judge.answered.total()} answers to {len(self._judge.answered)} questions"
        return "\n".join([f"sent: {dict(sent)}", self.accounts.tell(), f"in the end: {line}", asked])


def outside() -> tuple[Outside, JudgeOfKinds]:
    """Return whoever is told and asked, the judge among them."""
    judge = JudgeOfKinds()
    return Outside(judge), judge
