"""Small worlds for the laws: traces of all shapes, a judge that is a function of the transcript, and schedules that do their worst.

A world delivers the same facts in any order, split anywhere, any number of times, with wakes, late judgments and crashes in between.
At the end everything has been delivered and every clock has run out; then the rows must be what they always are.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
from hypothesis import strategies as st
from opentelemetry.metrics import NoOpMeter

from collectors.dialects import read
from collectors.kafka.records import Incoming, encode
from collectors.otlp.cutting import LEAST, cut_texts
from pipeline.model.evidence import Evidence, Found, Question, answered
from pipeline.model.ids import digest
from pipeline.model.log_record import LogRecord
from pipeline.model.log_record import seal as seal_log
from pipeline.model.result import JudgeRequest, Judgment, Outcome
from pipeline.model.run import Place
from pipeline.model.span import TRUNCATED_FIELDS, Span, seal
from pipeline.model.time import DAY, MINUTE, SECOND
from pipeline.model.topology import JUDGE, Record, Topic
from pipeline.model.version import ResultRow
from pipeline.model.window import Sums, Touched
from pipeline.runtime.clock import Times
from pipeline.runtime.facts import insert_facts
from pipeline.runtime.owner import TraceOwner
from pipeline.runtime.telemetry import Telemetry
from pipeline.stages.close import AssembleSettings
from pipeline.stages.grade import Grading
from pipeline.stages.turn import Assembly
from pipeline.stages.window import fold
from sinks.memory import MemoryStore
from sinks.memory_gates import minute_row

T0 = 1_790_000_090 * SECOND
"""Ten seconds before a minute ends: small moves cross it."""


def span(trace: int, index: int, parent: int | None, **fields: Any) -> Span:
    """Span ``index`` of trace ``trace``; attributes in OpenTelemetry GenAI form."""
    start = fields.pop("start", T0 + index * SECOND)
    end = fields.pop("end", start + 2 * SECOND)
    return seal(
        Span(
            project=fields.pop("project", "default"),
            trace_id=f"{trace + 1:032x}",
            span_id=f"{index + 1:016x}",
            parent_id="" if parent is None else f"{parent + 1:016x}",
            name=fields.pop("name", "span"),
            start_ns=start,
            end_ns=end,
            received_ns=fields.pop("received", T0 + 20 * SECOND),
            status_code=fields.pop("status", 0),
            resource={"service.name": "shop", "deployment.environment.name": fields.pop("environment", "prod")},
            attributes=fields,
        )
    )


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


def agent(trace: int, index: int, parent: int | None, name: str, **fields: Any) -> Span:
    """An agent span."""
    return span(
        trace,
        index,
        parent,
        name=f"invoke_agent {name}",
        **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name},
        **fields,
    )


def model(trace: int, index: int, parent: int | None, answer: str, **fields: Any) -> Span:
    """A model call that was asked something and said ``answer``."""
    return span(
        trace,
        index,
        parent,
        name="chat m",
        **{
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.usage.input_tokens": 10,
            "gen_ai.input.messages": _message("user", f"question {trace}"),
            "gen_ai.output.messages": _message("assistant", answer),
        },
        **fields,
    )


def tool(trace: int, index: int, parent: int | None, name: str, *, fails: bool, **fields: Any) -> Span:
    """An executed tool call."""
    return span(
        trace,
        index,
        parent,
        name=f"execute_tool {name}",
        status=2 if fails else 0,
        **{
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": f"call-{index}",
            "gen_ai.tool.call.arguments": json.dumps({"id": index}),
            "gen_ai.tool.call.result": "no such order" if fails else "done",
        },
        **fields,
    )


def log_record(trace: int, index: int, event_name: str, body: Any = None, **fields: Any) -> LogRecord:
    """A log record of span ``index`` of trace ``trace``."""
    return seal_log(
        LogRecord(
            project=fields.pop("project", "default"),
            trace_id=f"{trace + 1:032x}",
            span_id=f"{index + 1:016x}",
            event_name=event_name,
            time_ns=fields.pop("time", T0 + index * SECOND),
            received_ns=fields.pop("received", T0 + 20 * SECOND),
            position=fields.pop("position", 0),
            body=body,
            attributes=fields,
        )
    )


@st.composite
def log_records(draw: st.DrawFn, trace: int) -> list[LogRecord]:
    """What was logged for spans of a trace: messages of model calls, evaluations by others; some of spans that are never exported."""
    made: list[LogRecord] = []
    for number in range(draw(st.integers(0, 4))):
        index = draw(st.sampled_from([0, 0, 1, 2, 3, 60]))
        times = {
            "time": T0 + draw(st.integers(0, 2)),
            "received": T0 + draw(st.sampled_from([20, 500])) * SECOND,
            "position": number,
        }
        name, body, attributes = draw(
            st.sampled_from(
                [
                    ("gen_ai.user.message", {"content": f"question {trace}"}, {}),
                    ("gen_ai.choice", {"message": {"content": "refunded"}}, {}),
                    ("gen_ai.choice", '{"message": {"content": "sorry"}}', {}),
                    (
                        "gen_ai.evaluation.result",
                        None,
                        {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "fail"},
                    ),
                ]
            )
        )
        made.append(log_record(trace, index, name, body, **attributes, **times))
    return made


@st.composite
def traces(draw: st.DrawFn, trace: int) -> list[Span]:
    """One trace: a tree of servers, agents, model calls and tools, some of its spans in several versions, some never exported."""
    size = draw(st.integers(1, 7))
    made: list[Span] = []
    for index in range(size):
        parent = draw(st.one_of(st.none(), st.integers(0, index - 1))) if index else None
        if index and draw(st.integers(0, 9)) == 0:
            parent = 50  # a parent that is never exported
        made.append(_any_span(draw, trace, index, parent))
    for index in draw(st.lists(st.integers(0, size - 1), max_size=3)):
        made.append(_another_version(draw, made[index]))
    return made


def _any_span(draw: st.DrawFn, trace: int, index: int, parent: int | None) -> Span:
    kind = draw(st.sampled_from(["agent", "agent", "model", "model", "silent", "cut", "tool", "other", "workflow"]))
    jitter = draw(st.sampled_from([0, SECOND, 15 * SECOND, 70 * SECOND, -MINUTE]))
    times = {"start": T0 + index * SECOND + jitter, "end": T0 + (index + 3) * SECOND + jitter}
    if kind == "agent":
        return agent(trace, index, parent, draw(st.sampled_from(["a", "b"])), **times)
    if kind == "model":
        return model(trace, index, parent, draw(st.sampled_from(["", "refunded", "sorry"])), **times)
    if kind == "cut":
        return _cut(model(trace, index, parent, draw(st.sampled_from(["refunded " * 99, "sorry"])), **times))
    if kind == "tool":
        return tool(trace, index, parent, draw(st.sampled_from(["lookup", "refund"])), fails=draw(st.booleans()), **times)
    bare: dict[str, tuple[str, dict[str, Any]]] = {
        "silent": (
            "chat m",
            {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
        ),  # its messages are in log records, if anywhere
        "workflow": ("invoke_workflow w", {"gen_ai.operation.name": "invoke_workflow"}),
    }
    name, said = bare.get(kind, ("GET /", {}))
    return span(trace, index, parent, name=name, **said, **times)


def _cut(one: Span) -> Span:
    """The span as one that was too large: its longest text was cut, in the middle of its JSON."""
    told: dict[str, None] = {}
    content = cut_texts({"attributes": one.attributes}, LEAST, told)
    return seal(msgspec.structs.replace(one, attributes={**content["attributes"], TRUNCATED_FIELDS: list(told)}))


def _another_version(draw: st.DrawFn, one: Span) -> Span:
    """The same span, said differently: not ended yet, ended later (another minute, another day), renamed, seen earlier."""
    changes: dict[str, Any] = draw(
        st.sampled_from(
            [
                {"end_ns": 0},
                {"end_ns": one.end_ns + 30 * SECOND},
                {"end_ns": one.end_ns + DAY},
                {"attributes": {**one.attributes, "gen_ai.agent.name": "renamed", "extra": 1}},
                {"resource": {**one.resource, "deployment.environment.name": "staging"}, "end_ns": one.end_ns + SECOND},
                {"received_ns": one.received_ns - 5 * SECOND, "attributes": {**one.attributes, "extra": 2}},
            ]
        )
    )
    return seal(msgspec.structs.replace(one, **changes))


def verdict_of(request: JudgeRequest, dimension: str, contract: str) -> Judgment:
    """A judge that says the same of the same transcript, always, and sometimes has no answer."""
    drawn = int(digest(2, request.transcript_hash, dimension), 16) % 7
    decided = drawn < 5
    return Judgment(
        project=request.project,
        trace_id=request.trace_id,
        run_id=request.run_id,
        run_version=request.run_version,
        transcript_hash=request.transcript_hash,
        contract=contract,
        dimension=dimension,
        outcome=(Outcome.PASS if drawn >= 2 else Outcome.FAIL) if decided else Outcome.INSUFFICIENT_EVIDENCE,
        score=float(drawn + 1) if decided else None,
        unresolved="" if decided else "insufficient_evidence",
        judged_ns=T0,
    )


def ledger_says(question: Question) -> Evidence:
    """A record source that says the same under the same key, always: the record, two of them, another one's, none, or nothing at all."""
    drawn = int(digest(2, question.source, question.key), 16) % 6
    (wanted,) = json.loads(question.key).values()
    if drawn == 0:
        return answered(question, Found.FAILED, T0, error="no answer within 5 s")
    if drawn == 1:
        return answered(question, Found.ABSENT, T0)
    records = [{"id": wanted + (drawn == 2), "state": "done"}] * (2 if drawn == 3 else 1)
    return answered(question, Found.RECORD, T0, body=json.dumps(records))


class Action(msgspec.Struct, frozen=True):
    """One thing that happens: records arrive, time passes (in ``silence`` of the judge), it answers, or the owner dies and another takes over.

    Or what was asked of record sources is ``read``.
    """

    kind: str
    records: tuple[int, ...] = ()
    seconds: int = 0


@st.composite
def schedules(draw: st.DrawFn, records: int) -> list[Action]:
    """Any order, any split, any redelivery, with wakes, answers and crashes anywhere."""
    order = draw(st.permutations(range(records)))
    again = draw(st.lists(st.integers(0, records - 1), max_size=4))
    queue = [*order, *again]
    actions: list[Action] = []
    while queue:
        size = draw(st.integers(1, max(1, len(queue))))
        actions.append(Action("arrive", records=tuple(queue[:size])))
        queue = queue[size:]
        kind = draw(st.sampled_from(["nothing", "pass", "pass", "answer", "read", "crash"]))
        if kind != "nothing":
            actions.append(Action(kind, seconds=draw(st.sampled_from([0, 5, 61, 400, 1000, 90_000]))))
    return actions


class Log:
    """A topic without a broker: its partitions, and the records in them as a client reads them."""

    def __init__(self, topic: Topic, partitions: int = 1) -> None:
        self.topic = topic
        self.partitions: list[list[Incoming]] = [[] for _ in range(partitions)]

    def append(self, records: Sequence[Any], at_ns: int) -> list[Incoming]:
        """Take records, each as one of its own; return them as they will be read."""
        encoded = [one for record in records for one in encode(self.topic, [record], len(self.partitions))]
        return [self.append_raw(one.value, dict(one.headers), at_ns, one.partition) for one in encoded]

    def append_raw(self, value: bytes, headers: Mapping[str, bytes], at_ns: int, partition: int = 0) -> Incoming:
        """Take any bytes."""
        held = self.partitions[partition]
        held.append(Incoming(self.topic.name, partition, len(held), at_ns, value, tuple(headers.items())))
        return held[-1]


class World:
    """An owner on a store in memory, driven by hand."""

    def __init__(self, grading: Grading, settings: AssembleSettings | None = None) -> None:
        self.store = MemoryStore()
        self.now = T0 + 30 * SECOND
        self.questions: list[JudgeRequest] = []
        self.reads: list[Question] = []
        self.touched: set[Touched] = set()
        self._assembly = Assembly(read=read, settings=settings or AssembleSettings(), grading_of=lambda _project, _agent: grading)
        self._telemetry = Telemetry(NoOpMeter("test"))
        self.owner = self._new_owner()

    def _new_owner(self) -> TraceOwner:
        async def publish(topic: Topic, records: Sequence[Any]) -> None:
            if topic is JUDGE:
                self.questions.extend(records)
            else:
                self.touched.update(records)

        return TraceOwner(self.store, self._assembly, publish, self._telemetry, read=self.reads.extend)

    @property
    def times(self) -> Times:
        return Times.single(self.now)

    async def arrive(self, records: Sequence[Record]) -> None:
        """Store records, then fold them."""
        await insert_facts(self.store, records)
        await self.owner.fold(records, self.times)

    async def wait(self, seconds: float, *, judge_answers: bool = True) -> None:
        """Let time pass; what is due is done when it is due. The judge may take its time, but answers before the deadline."""
        until = self.now + int(seconds * SECOND)
        await self.owner.tick(self.times)
        while (wake := self.owner.next_wake) is not None and wake <= until:
            if judge_answers and any(request.deadline_ns <= wake for request in self.questions):
                await self.answer()
                continue
            self.now = max(self.now, wake)
            await self.owner.tick(self.times)
        self.now = until

    async def answer(self) -> None:
        """Let the judge answer everything it was asked."""
        asked, self.questions = self.questions, []
        await self.arrive([verdict_of(request, *one) for request in asked for one in request.dimensions])

    async def read(self) -> None:
        """Let record sources answer everything they were asked."""
        asked, self.reads[:] = dict.fromkeys(self.reads), []
        await self.arrive([ledger_says(question) for question in asked])

    async def crash(self) -> None:
        """Lose everything but the store; a new owner takes over."""
        self.questions.clear()
        self.reads.clear()
        self.owner = self._new_owner()
        await self.owner.recover(self.now)

    async def act(self, action: Action, records: Sequence[Record]) -> None:
        """Do one action of a schedule."""
        if action.kind == "arrive":
            await self.arrive([records[index] for index in action.records])
        elif action.kind == "answer":
            await self.answer()
        elif action.kind == "read":
            await self.read()
        elif action.kind == "crash":
            await self.crash()
        await self.wait(action.seconds, judge_answers=action.kind != "silence")

    async def settle(self) -> None:
        """Run out every clock, with the judge and record sources answering at once."""
        for _ in range(60):
            await self.owner.tick(self.times)
            if self.reads:
                await self.read()
            elif self.questions:
                await self.answer()
            elif self.owner.next_wake is None:
                return
            else:
                self.now = max(self.now, self.owner.next_wake)
        raise AssertionError("the world does not settle")


def run_world(grading: Grading, records: Sequence[Record], schedule: Sequence[Action]) -> World:
    """Play a schedule to its end."""

    async def play() -> World:
        world = World(grading)
        for action in schedule:
            await world.act(action, records)
        await world.settle()
        return world

    return asyncio.run(play())


def in_order(records: Sequence[Record]) -> list[Action]:
    """The plainest schedule: all at once."""
    return [Action("arrive", records=tuple(range(len(records))))]


class Stored(Protocol):
    """Any world with a store."""

    store: MemoryStore


def runs_of(world: Stored) -> list[dict[str, Any]]:
    """What the live run rows say, without versions, arrival and close times."""
    rows = []
    for one in world.store.live_runs():
        row = msgspec.to_builtins(one)
        for passing in ("version", "requested_ns", "deadline_ns"):
            row.pop(passing)
        rows.append(row)
    return sorted(rows, key=lambda row: str(row["run"]["run_id"]))


def results_of(world: Stored) -> list[tuple[Any, ...]]:
    """What counts: every row with a weight, without its version."""
    return sorted(
        (row.project, row.key, row.kind, row.weight, row.inclusion_probability, repr(row.result))
        for row in world.store.counting()
    )


def windows_of(world: Stored) -> dict[tuple[Place, str, str], Sums]:
    """Sums of every minute and dimension; a minute that holds only retired rows is no data."""
    by_series: dict[tuple[Place, str, str], list[ResultRow]] = {}
    for row in world.store.results.values():
        by_series.setdefault((row.key.place, row.key.dimension, row.key.contract), []).append(row)
    sums = {key: fold(minute_row(row) for row in rows) for key, rows in by_series.items()}
    return {key: msgspec.structs.replace(one, fingerprint=0, rows=0) for key, one in sums.items() if one.n}
