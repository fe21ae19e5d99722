"""Any noun that travels on a topic."""

from collections.abc import Iterable
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from collectors.otlp import protobuf
from collectors.otlp.encode import Part, TracesData
from pipeline.model.evidence import Evidence
from pipeline.model.log_record import LogRecord
from pipeline.model.result import Feedback, JudgeRequest, Judgment
from pipeline.model.run import Cohort
from pipeline.model.span import Event, Link, Span, bytes_value, seal
from pipeline.model.topology import DEAD_LETTERS, JUDGE, TOUCHED, TRIPS, DeadLetter, Topic
from pipeline.model.window import Touched, Trip

LAWS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

projects = st.sampled_from(["default", "shop", "Zoë & Söhne"])
times = st.integers(0, 2**63 - 1)
trace_ids = st.sampled_from([f"{n:032x}" for n in (1, 2, 3, 0xABCDEF << 96)])
span_ids = st.integers(1, 2**64 - 1).map(lambda n: f"{n:016x}")
scalars: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, 0.0, -0.0, 1.0, 1e308, "", "NaN", "Infinity", "-Infinity"]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.binary(max_size=5).map(bytes_value),
    st.sampled_from(
        [{"bytesValue": "not base64"}, {"bytesValue": "AP8"}, {"bytesValue": 1}, {"bytesValue": "AP8=", "other": None}]
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
attributes = st.dictionaries(st.text(max_size=6), values, max_size=4)
resources = (
    st.sampled_from([{}, {"service.name": "shop"}, {"service.name": "shop", "host.id": b"\0".hex(), "pid": 7}]) | attributes
)
spans = st.builds(
    Span,
    project=projects,
    trace_id=trace_ids,
    span_id=span_ids,
    parent_id=span_ids | st.just(""),
    name=st.text(max_size=5),
    start_ns=times,
    end_ns=times,
    received_ns=times,
    kind=st.integers(0, 255),
    status_code=st.integers(0, 255),
    status_message=st.sampled_from(["", "boom"]),
    attributes=attributes,
    events=st.lists(st.builds(Event, st.text(max_size=3), times, attributes), max_size=2).map(tuple),
    links=st.lists(st.builds(Link, trace_ids | st.just(""), span_ids | st.just(""), attributes), max_size=2).map(tuple),
    resource=resources,
    scope_name=st.sampled_from(["", "tracer"]),
    scope_version=st.sampled_from(["", "1.2"]),
    trace_state=st.sampled_from(["", "a=b"]),
    flags=st.integers(0, 2**32 - 1),
    dropped=st.integers(0, 2**32 - 1),
).map(seal)

numbers = st.floats(allow_nan=False, allow_infinity=False)
"""Nothing that a noun says is NaN or infinite: what was not measured is None."""
_BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=6),
    int: st.integers(-(2**63), 2**63 - 1),
    float: numbers,
    float | None: st.none() | numbers,
}


def _any(noun: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any noun of a type, every field drawn."""
    drawn = {field.name: _BY_TYPE.get(field.type, st.from_type(field.type)) for field in msgspec.structs.fields(noun)}
    return st.builds(noun, **(drawn | {"project": projects} | fields))


cohorts = st.builds(Cohort, *[st.text(max_size=4)] * 3)
judgments = _any(Judgment)
feedback = _any(Feedback)
evidence = _any(Evidence)
log_records = _any(LogRecord, trace_id=trace_ids, body=values, attributes=attributes, resource=resources)
others: tuple[tuple[Topic, st.SearchStrategy[Any]], ...] = (
    (JUDGE, _any(JudgeRequest)),
    (TOUCHED, _any(Touched, cohort=cohorts)),
    (TRIPS, _any(Trip, cohort=cohorts)),
    (DEAD_LETTERS, _any(DeadLetter, project=projects | st.just(""))),
)


def ordered(nouns: Any) -> list[bytes]:
    """The nouns as a set that counts: sorted by what they say."""
    return sorted(msgspec.json.encode([type(noun).__name__, noun]) for noun in nouns)


def spans_of(parts: Iterable[Part]) -> list[Span]:
    """What parts say, read one by one."""
    found: list[Span] = []
    for part in parts:
        data = TracesData()
        data.add(part)
        found += protobuf.decode(data.to_bytes(), part.project, 0, own=True).spans
    return found
