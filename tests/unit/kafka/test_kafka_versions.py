"""Records of this release are read by the next, and its by this one. The files in data are what release 0.1 wrote: they stay as they are."""

from base64 import b64decode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from collectors.kafka.records import Incoming, decode
from pipeline.errors import PermanentError
from pipeline.model.evidence import Evidence, Found
from pipeline.model.log_record import LogRecord
from pipeline.model.log_record import seal as seal_log
from pipeline.model.result import Feedback, JudgeRequest, Judgment, Outcome
from pipeline.model.run import Cohort
from pipeline.model.span import Event, Link, Span, seal
from pipeline.model.topology import DEAD_LETTERS, JUDGE, TOPICS, TOUCHED, TRACES, TRIPS, DeadLetter
from pipeline.model.window import Touched, Transition, Trip

DATA = Path(__file__).parent / "data"
T0 = 1_790_000_000_000_000_001
COHORT = Cohort("support", "1.4.2", "prod")
TRACE = "5b8efff798038103d269b633813fc60c"
NOUNS: dict[str, list[Any]] = {
    "spans": [
        seal(
            Span(
                project="shop",
                trace_id=TRACE,
                span_id=span_id,
                parent_id=parent_id,
                name="chat gpt-4.1",
                start_ns=T0,
                end_ns=T0 + 5,
                received_ns=T0 + 7,
                kind=3,
                status_code=2,
                status_message="boom",
                attributes={
                    "text": "é",
                    "empty": "",
                    "yes": True,
                    "int": -1,
                    "float": 1.0,
                    "nan": "NaN",
                    "none": None,
                    "list": [1, None, "x", {"k": 0.5}],
                    "map": {"a": {}},
                    "bytes": {"bytesValue": "AP8="},
                },
                events=(Event("exception", T0 + 1, {"exception.type": "E"}),),
                links=(Link("02" * 16, "03" * 8, {"why": "retry"}), Link("", "", {})),
                resource={"service.name": "shop"},
                scope_name="tracer",
                scope_version="1.2",
                trace_state="a=b",
                flags=0x301,
                dropped=6,
            )
        )
        for span_id, parent_id in (("eee19b7ec3c1b174", ""), ("eee19b7ec3c1b175", "eee19b7ec3c1b174"))
    ],
    "judgment": [
        Judgment(
            "shop",
            TRACE,
            "r1",
            8,
            "h",
            "c",
            "grounded",
            Outcome.PASS,
            4.0,
            "",
            "says so",
            "é",
            "m",
            3,
            10,
            2,
            0.25,
            ("family",),
            T0,
        ),
        Judgment("shop", TRACE, "r1", 8, "h", "c", "tone", Outcome.GRADER_ERROR, unresolved="grader_error", judged_ns=T0),
    ],
    "log_record": [
        seal_log(
            LogRecord(
                "shop",
                TRACE,
                "eee19b7ec3c1b174",
                "gen_ai.choice",
                T0 + 2,
                T0 + 7,
                3,
                9,
                {"message": {"content": "é", "tool_calls": [None, 1, 0.5]}},
                {"gen_ai.system": "openai", "yes": True, "bytes": {"bytesValue": "AP8="}},
                {"service.name": "shop"},
                "tracer",
                "1.2",
                4,
            )
        )
    ],
    "evidence": [
        Evidence("shop", TRACE, "r1", "payments", "c", '{"order": "A-1"}', "d", Found.RECORD, T0, '[{"amount":12.50}]', "", "h"),
        Evidence("shop", TRACE, "r1", "payments", "c", "{}", "d", Found.FAILED, T0, error="status 503"),
    ],
    "feedback": [Feedback("shop", TRACE, "f1", -1.0, "r1", "ann", "wrong", T0)],
    "judge_request": [
        JudgeRequest(
            "shop", TRACE, "r1", "support", 8, "h", "transcript", (("grounded", "c"),), "p", 0.5, T0, T0 + 9, ("gpt-4.1",)
        )
    ],
    "touched": [Touched("shop", COHORT, 1_790_000_000_000_000_000)],
    "trip": [
        Trip("shop", "g", "rate", COHORT, "t1", Transition.FIRED, T0, "c", "grounded", T0 - 1, "", 0.5, 0.9, "too low"),
        Trip("shop", "g", "hard", COHORT, "t2", Transition.RUN, T0, run_id="r1", retracted=True),
    ],
    "dead_letter": [DeadLetter("shop", "tracegrade.traces", "it does not decode", b"\x00\xff")],
}
TOPIC_OF = {"judge_request": JUDGE, "touched": TOUCHED, "trip": TRIPS, "dead_letter": DEAD_LETTERS}


class Stored(msgspec.Struct):
    headers: dict[str, str]
    value: str


def _incoming(kind: str, **changed: str) -> Incoming:
    stored = msgspec.json.decode((DATA / f"{kind}.v1.json").read_bytes(), type=Stored)
    headers = tuple((name, said.encode()) for name, said in (stored.headers | changed).items())
    return Incoming(TOPIC_OF.get(kind, TRACES).name, 0, 0, 0, b64decode(stored.value), headers)


def _rewritten(incoming: Incoming, change: Any) -> Incoming:
    items = msgspec.json.decode(incoming.value)
    return msgspec.structs.replace(incoming, value=msgspec.json.encode([change(item) for item in items]))


def _without(optional: frozenset[str]) -> Any:
    return lambda item: {name: value for name, value in item.items() if name not in optional}


def _bare(noun: Any) -> Any:
    return type(noun)(**{field.name: getattr(noun, field.name) for field in msgspec.structs.fields(noun) if field.required})


def test_there_is_a_stored_record_of_every_kind() -> None:
    assert {path.name for path in DATA.glob("*.v1.json")} == {f"{kind}.v1.json" for kind in NOUNS}
    assert set(TOPICS) == {TRACES, *TOPIC_OF.values()}


@pytest.mark.parametrize("kind", NOUNS)
def test_what_release_0_1_wrote_is_read(kind: str) -> None:
    read = decode(_incoming(kind))
    assert (read.records, read.refused) == (NOUNS[kind], "")


@pytest.mark.parametrize("kind", NOUNS)
def test_the_next_version_is_read_and_its_new_fields_are_passed_over(kind: str) -> None:
    incoming = _incoming(kind, version="2", priority="high")
    if kind != "spans":
        incoming = _rewritten(incoming, lambda item: item | {"of_the_future": {"x": [1]}})
    else:  # an unknown field of the message: number 99, one byte
        incoming = msgspec.structs.replace(incoming, value=incoming.value + b"\x98\x06\x01")
    read = decode(incoming)
    assert (read.records, read.refused) == (NOUNS[kind], "")


@pytest.mark.parametrize("kind", [kind for kind in NOUNS if kind != "spans"])
def test_fields_that_an_older_writer_does_not_know_have_their_defaults(kind: str) -> None:
    optional = frozenset(field.name for field in msgspec.structs.fields(type(NOUNS[kind][0])) if not field.required)
    read = decode(_rewritten(_incoming(kind), _without(optional)))
    assert read.records == [_bare(noun) for noun in NOUNS[kind]]


@pytest.mark.parametrize("kind", NOUNS)
@pytest.mark.parametrize("version", ["0", "3", "x", "", "1.0", " 1"])
def test_other_versions_are_refused(kind: str, version: str) -> None:
    with pytest.raises(PermanentError, match="reads versions 1 and 2"):
        decode(_incoming(kind, version=version))
