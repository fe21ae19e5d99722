"""A scenario for both runtimes: what is sent, in which order, and what the tables of the two are compared by."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from ruamel.yaml import YAML
from two_runtimes_records import without_times

from collectors.replay import Sender, Times, read, retime
from collectors.replay.retime import ENVIRONMENT
from collectors.replay.send import pieces
from collectors.replay.wire import spans_in
from pipeline.model.result import Feedback
from pipeline.model.time import MINUTE, SECOND, minute_of
from pipeline.model.window import Transition
from sinks.clickhouse.connection import Database

ROOT: Final = Path(__file__).parents[1]
FILE: Final = Path(__file__).parent / "scenarios" / "two_runtimes" / "scenario.yaml"
ENDS: Final = 50 * SECOND
"""When in its minute the last span of a recording ends. The longest recording takes 38 s."""

ROOM: Final = 90 * SECOND
"""From sending to the time at which windows are final: everything must be graded by then, as a late result amends a window."""
START_UP: Final = 35 * SECOND
"""How long starting everything usually takes; where it takes longer, the scenario happens that many minutes later."""

Request = ExportTraceServiceRequest


class ExpectedRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``trace`` is how the id of its trace begins."""

    trace: str
    agent: str
    verdict: str
    rows: int
    judgments: int
    effect: str | None = None
    """What came of reading whether what it did is there; None where it did nothing of the kind."""


class Late(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The span that is held back, and until when."""

    span: str
    until: Literal["graded", "final"]


class Recorded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A recording, and what a person read in it."""

    file: str
    spans: int
    runs: tuple[ExpectedRun, ...]
    environment: str = "unknown"
    minutes_ago: int = 0
    not_an_agent_run: tuple[str, ...] = ()
    late: Late | None = None

    def requests(self, minute_ns: int) -> list[Request]:
        """Return the recording as it is sent, its last span ending in the minute (or so many before it)."""
        (recording,) = read([ROOT / self.file])
        assert recording.spans == self.spans, self.file
        until = minute_ns - self.minutes_ago * MINUTE + ENDS
        found = list(retime([recording], Times.SHIFTED, until, same_ids=True))
        for request in found if self.environment != "unknown" else ():
            for resource_spans in request.resource_spans:
                resource_spans.resource.attributes.add(key=ENVIRONMENT, value=AnyValue(string_value=self.environment))
        return found


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Feedback on the run of a trace."""

    id: str
    trace: str
    value: float
    author: str
    comment: str


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The scenario file."""

    project: str
    configuration: dict[str, Any]
    answers: dict[str, Any]
    recordings: tuple[Recorded, ...]
    feedback: tuple[Said, ...]
    expected: dict[str, Any]

    @property
    def runs(self) -> list[ExpectedRun]:
        return [run for recording in self.recordings for run in recording.runs]


def scenario() -> Scenario:
    """Read the scenario file."""
    return msgspec.convert(json.loads(json.dumps(YAML(typ="safe").load(FILE.read_text(encoding="utf-8")))), Scenario)


class Schedule(NamedTuple):
    """Waits that end when the windows of a past minute are final soon: workers live by the wall clock."""

    whole_minute_ns: int
    deadline_ns: int

    @classmethod
    def from_now(cls, now: int) -> "Schedule":
        """The windows of the last whole minute but one are final after the usual start-up and the room that grading needs."""
        whole = minute_of(now) - MINUTE
        return cls(whole, now + START_UP + ROOM - whole)

    @property
    def settings(self) -> dict[str, Any]:
        """Both kinds of dimensions become final together: the judge's deadline, and the idle timeout and a minute."""
        return {"deadline": f"{self.deadline_ns // 10**6}ms", "idle_timeout": f"{(self.deadline_ns - MINUTE) // 10**6}ms"}

    def minute(self, now: int) -> int:
        """The earliest past minute whose windows are final when there was room enough."""
        past = range(self.whole_minute_ns - MINUTE, minute_of(now), MINUTE)
        return next(minute for minute in past if self.final_at(minute) - now >= ROOM)

    def final_at(self, minute: int) -> int:
        return minute + MINUTE + self.deadline_ns


class Deliveries(msgspec.Struct, frozen=True):
    """The requests of a scenario, the very same ones for both runtimes."""

    recordings: tuple[tuple[Request, ...], ...]
    """By recording, as the instrumented agents sent them, less what is held back."""
    late: Mapping[str, tuple[Request, ...]]
    """What was held back, by until when."""

    @classmethod
    def of(cls, played: Scenario, minute_ns: int) -> "Deliveries":
        recordings: list[tuple[Request, ...]] = []
        late: dict[str, tuple[Request, ...]] = {}
        for recorded in played.recordings:
            requests = recorded.requests(minute_ns)
            if recorded.late is not None:
                held = recorded.late.span
                requests = single(requests)
                late[recorded.late.until] = tuple(one for one in requests if _span_ids(one) == [held])
                assert len(late[recorded.late.until]) == 1, recorded
                requests = [one for one in requests if _span_ids(one) != [held]]
            recordings.append(tuple(requests))
        return cls(tuple(recordings), late)

    def as_recorded(self) -> Iterator[Request]:
        """Whole requests in the order of the file; then every third recording once more, span by span."""
        for requests in self.recordings:
            yield from requests
        for requests in self.recordings[::3]:
            yield from single(requests)

    def backwards(self) -> Iterator[Request]:
        """Span by span, the last recording first and its last span first; every third span is sent three times."""
        for requests in reversed(self.recordings):
            for at, request in enumerate(reversed(single(requests))):
                yield from [request] * (1 if at % 3 else 3)

    def trace_ids(self) -> set[str]:
        """All traces, as the spans name them."""
        return {span.trace_id.hex() for requests in self.recordings for request in requests for span in spans_in(request)}

    def feedback(self, played: Scenario, received_ns: int) -> list[Feedback]:
        """What people said, of the traces that the scenario means."""
        ids = self.trace_ids()
        return [
            Feedback(
                project=played.project,
                trace_id=next(trace_id for trace_id in ids if trace_id.startswith(said.trace)),
                id=said.id,
                value=said.value,
                author=said.author,
                comment=said.comment,
                received_ns=received_ns,
            )
            for said in played.feedback
        ]


def single(requests: Iterable[Request]) -> list[Request]:
    """Return the same spans, each in a request of its own."""
    return [piece for request in requests for piece in pieces(request, 1)]


def _span_ids(request: Request) -> list[str]:
    return [span.span_id.hex() for span in spans_in(request)]


def deliver(requests: Iterable[Request], endpoints: Sequence[str]) -> int:
    """Send requests through the real exporters, to the endpoints in turn, and return how many were accepted; all must be."""
    senders = [Sender(endpoint) for endpoint in endpoints]
    sent = 0
    try:
        for sender, request in zip(cycle(senders), requests, strict=False):
            answer = sender.send(request)
            assert answer.accepted, answer
            assert not answer.rejected, answer
            sent += 1
    finally:
        for sender in senders:
            sender.__exit__(None, None, None)
    return sent


ARRIVAL: Final = "by each runtime's own clock: when it arrived, was asked for, or was written"
REWRITES: Final = "counts how often the row was written on the way to what it says, which depends on what came together"
MAY_DIFFER: Final[Mapping[str, Mapping[str, str]]] = {
    "spans": {"received_at": ARRIVAL, "earliness": "is received_at, turned around"},
    "judgments": {
        "judged_at": ARRIVAL,
        "earliness": "is judged_at, turned around",
        "run_version": "of the version that asked first; it is asked again whenever the trace is looked at",
    },
    "feedback": {"received_at": ARRIVAL, "earliness": "is received_at, turned around"},
    "record_reads": {"read_at": ARRIVAL, "earliness": "is read_at, turned around", "content_hash": "covers read_at"},
    "traces": {
        "first_received_at": ARRIVAL,
        "receipts": ARRIVAL,
        "closed_at": ARRIVAL,
        "inserted_at": ARRIVAL,
        "close_reason": "promise 4: by which rule it was closed depends on what had come by then",
    },
    "runs": {"first_received_at": ARRIVAL, "requested_at": ARRIVAL, "deadline_at": ARRIVAL, "inserted_at": ARRIVAL},
    "transcripts": {"inserted_at": ARRIVAL},
    "places": {"inserted_at": ARRIVAL},
    "results": {"first_received_at": ARRIVAL, "inserted_at": ARRIVAL},  # and of evidence when a record was read; see _as_told
    "minutes": {"first_received_at": ARRIVAL},
    "windows": {"first_received_at": ARRIVAL},
    "evaluations": {},
    "trips": {},  # see _as_told
    "notifications": {"due_at": ARRIVAL, "confirmed_at": ARRIVAL, "attempts": "of deliveries", "version": REWRITES},
    "golden_cases": {"version": REWRITES},
    "golden_members": {},
    "gate_states": {"last_failure_at": ARRIVAL, "version": REWRITES},
}
"""The tables that are compared, and the only columns that are left out of the comparison, each with the reason."""
HARD_TRIP: Final[Mapping[str, str]] = {
    "at": ARRIVAL,
    "transition": "which of an incident's runs opened it (fired) and which joined it (run) is the order in which they were graded",
}
HARD_NOTIFICATION: Final[Mapping[str, str]] = {
    "at": ARRIVAL,
    **dict.fromkeys(("run_id", "why", "dimension", "contract", "window"), "of the run that opened the incident; see HARD_TRIP"),
}

Rows = Mapping[str, list[dict[str, Any]]]
"""By table."""


def rows(database: Database) -> Rows:
    """Read every compared table as readers see it."""
    found: dict[str, list[dict[str, Any]]] = {table: database.query(f"SELECT * FROM {table} FINAL") for table in MAY_DIFFER}  # noqa: S608
    return found


def comparable(table: str, found: Iterable[dict[str, Any]]) -> Counter[str]:
    """Return the rows without what may differ, as texts: a multiset, since two equal rows are not one."""
    left_out = MAY_DIFFER[table]
    kept = ({key: value for key, value in row.items() if key not in left_out} for row in found)
    return Counter(json.dumps(_as_told(table, row), sort_keys=True, default=str) for row in kept)


def _as_told(table: str, row: dict[str, Any]) -> dict[str, Any]:
    if table == "results":
        return {**row, "evidence": without_times(row["evidence"])}
    if table == "trips" and row["kind"] == "hard":
        opened = row["transition"] != Transition.CLEARED
        return {**{key: value for key, value in row.items() if key not in HARD_TRIP}, "of_a_run": opened}
    if table == "golden_cases":
        body = json.loads(row["body"])
        return {**row, "body": {key: value for key, value in body.items() if key not in MAY_DIFFER[table]}}
    if table == "notifications":
        body = json.loads(row["body"])
        left_out = HARD_NOTIFICATION if body["kind"] == "hard" else {}
        return {**row, "body": {key: value for key, value in body.items() if key not in left_out}}
    return row


def differences(one: Counter[str], other: Counter[str], names: tuple[str, str], longest: int = 1500) -> list[str]:
    """Return the rows that only one of two has."""
    return [
        f"only {name}, {count} times: {text[:longest]}"
        for name, left in zip(names, (one - other, other - one), strict=True)
        for text, count in sorted(left.items())
    ]
