"""Every place in a span, a log record or a feedback where somebody can leave a secret: one trace for each place and secret."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span, Status
from secrets_of_all_kinds import PLANTED

from pipeline.model.ids import digest
from pipeline.model.time import SECOND

Plant: TypeAlias = Callable[[ResourceSpans, Span, str, str], object]
"""Puts a text into a span or into what it comes with; where the place has a name, under that name."""
NOTE: Final = "note"
UNDER: Final = "password"
UNDER_SECRET: Final = "h0rse-battery-42"
"""A secret that only the name tells, which is ``password``."""
RULE: Final = "customer"
PATTERN: Final = r"C-\d{6}"
BY_RULE: Final = "C-471100"


def _text(value: str) -> AnyValue:
    return AnyValue(string_value=value)


def _pair(name: str, value: AnyValue) -> KeyValue:
    return KeyValue(key=name, value=value)


def _map(name: str, value: AnyValue) -> AnyValue:
    return AnyValue(kvlist_value=KeyValueList(values=[_pair(name, value)]))


def _list(*values: AnyValue) -> AnyValue:
    return AnyValue(array_value=ArrayValue(values=values))


def _set(owner: Any, field: str) -> Callable[[str], None]:
    return lambda text: setattr(owner, field, text)


def _said(direction: str, role: str, text: str) -> KeyValue:
    messages = [{"role": role, "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}]
    return _pair(f"gen_ai.{direction}.messages", _text(json.dumps(messages)))


NAMED: Final[dict[str, Plant]] = {
    "attribute value": lambda _, span, name, text: span.attributes.append(_pair(name, _text(text))),
    "in a list": lambda _, span, name, text: span.attributes.append(_pair(name, _list(_text("a"), _text(text)))),
    "in a map": lambda _, span, name, text: span.attributes.append(_pair("a", _map(name, _text(text)))),
    "in a map in a list in a map": lambda _, span, name, text: span.attributes.append(
        _pair("a", _map("b", _list(_map(name, _text(text)))))
    ),
    "bytes": lambda _, span, name, text: span.attributes.append(_pair(name, AnyValue(bytes_value=text.encode()))),
    "bytes that are no text": lambda _, span, name, text: span.attributes.append(
        _pair(name, AnyValue(bytes_value=b"\xff\x00 " + text.encode() + b" \xfe"))
    ),
    "JSON": lambda _, span, name, text: span.attributes.append(_pair("a", _text(json.dumps({name: text})))),
    "JSON in JSON": lambda _, span, name, text: span.attributes.append(
        _pair("a", _text(json.dumps([{"arguments": json.dumps({"b": [{name: f"{text}"}]})}])))
    ),
    "event attribute": lambda _, span, name, text: span.events.add(name="e").attributes.append(_pair(name, _text(text))),
    "link attribute": lambda _, span, name, text: span.links.add(trace_id=b"t" * 16, span_id=b"s" * 8).attributes.append(
        _pair(name, _text(text))
    ),
    "resource attribute": lambda resource, _, name, text: resource.resource.attributes.append(_pair(name, _text(text))),
    "scope attribute": lambda resource, _, name, text: resource.scope_spans[0].scope.attributes.append(_pair(name, _text(text))),
}
"""Places that have a name, which may be what tells of the secret."""
UNNAMED: Final[dict[str, Plant]] = {
    "span name": lambda _, span, __, text: _set(span, "name")(text),
    "attribute key": lambda _, span, __, text: span.attributes.append(_pair(text, _text("x"))),
    "map key": lambda _, span, __, text: span.attributes.append(_pair("a", _map(text, _text("x")))),
    "JSON key": lambda _, span, __, text: span.attributes.append(_pair("a", _text(json.dumps({text: 1})))),
    "cut-off JSON": lambda _, span, __, text: span.attributes.append(_pair("a", _text(json.dumps([f"\n{text}\n", "tail"])[:-3]))),
    "escaped JSON": lambda _, span, __, text: span.attributes.append(
        _pair("a", _text('{"a": "' + "".join(f"\\u{ord(one):04x}" for one in text) + '"}'))
    ),
    "base64": lambda _, span, __, text: span.attributes.append(
        _pair("a", _text("data:;base64," + b64encode(f"Note: {text} and so on".encode()).decode()))
    ),
    "chat message": lambda _, span, __, text: span.attributes.extend(
        [_said("input", "user", f"My\n{text}"), _said("output", "assistant", "I see.")]
    ),
    "event name": lambda _, span, __, text: span.events.add(name=text),
    "event key": lambda _, span, __, text: span.events.add(name="e").attributes.append(_pair(text, _text("x"))),
    "link key": lambda _, span, __, text: span.links.add(trace_id=b"t" * 16, span_id=b"s" * 8).attributes.append(
        _pair(text, _text("x"))
    ),
    "link trace state": lambda _, span, __, text: span.links.add(trace_id=b"t" * 16, span_id=b"s" * 8, trace_state=text),
    "status message": lambda _, span, __, text: _set(span.status, "message")(text),
    "trace state": lambda _, span, __, text: _set(span, "trace_state")(text),
    "resource key": lambda resource, _, __, text: resource.resource.attributes.append(_pair(text, _text("x"))),
    "scope key": lambda resource, _, __, text: resource.scope_spans[0].scope.attributes.append(_pair(text, _text("x"))),
    "scope name": lambda resource, _, __, text: _set(resource.scope_spans[0].scope, "name")(text),
    "schema of a resource's spans": lambda resource, _, __, text: _set(resource, "schema_url")(text),
    "schema of a scope's spans": lambda resource, _, __, text: _set(resource.scope_spans[0], "schema_url")(text),
    "scope version": lambda resource, _, __, text: _set(resource.scope_spans[0].scope, "version")(text),
}
LOG_NAMED: Final[dict[str, Callable[[ResourceLogs, LogRecord, str, str], object]]] = {
    "log attribute": lambda _, record, name, text: record.attributes.append(_pair(name, _text(text))),
    "log body, a map": lambda _, record, name, text: record.body.CopyFrom(_map("content", _map(name, _text(text)))),
    "log resource": lambda resource, _, name, text: resource.resource.attributes.append(_pair(name, _text(text))),
    "log scope attribute": lambda resource, _, name, text: resource.scope_logs[0].scope.attributes.append(
        _pair(name, _text(text))
    ),
}
LOG_UNNAMED: Final[dict[str, Callable[[ResourceLogs, LogRecord, str, str], object]]] = {
    "log body": lambda _, record, __, text: record.body.CopyFrom(_text(f"said: {text}")),
    "log key": lambda _, record, __, text: record.attributes.append(_pair(text, _text("x"))),
    "log severity text": lambda _, record, __, text: _set(record, "severity_text")(text),
    "log scope name": lambda resource, _, __, text: _set(resource.scope_logs[0].scope, "name")(text),
    "log schema": lambda resource, _, __, text: _set(resource, "schema_url")(text),
    "log body, JSON": lambda _, record, __, text: record.body.CopyFrom(_text(json.dumps({"content": f"\n{text}"}))),
}
LOGGED: Final = LOG_NAMED | LOG_UNNAMED
SAID: Final = {"feedback comment": "comment", "feedback author": "author"}
PLACES: Final = (*NAMED, *UNNAMED, *LOGGED, *SAID)
WITH_NAMES: Final = (*NAMED, *LOG_NAMED)


class Cell(NamedTuple):
    """One secret in one place."""

    place: str
    kind: str
    name: str
    text: str
    secret: str

    @property
    def trace_id(self) -> str:
        """Its trace, which has nothing else."""
        return digest(16, *self)

    def request(self, end_ns: int) -> ExportTraceServiceRequest | ExportLogsServiceRequest:
        """An agent's span that ends then, or a log record of then, and holds the secret in this place."""
        return self._log_record(end_ns) if self.place in LOGGED else self._span(end_ns)

    def feedback(self) -> dict[str, object]:
        """What somebody says of the trace, with the secret in it."""
        return {"trace_id": self.trace_id, "value": "down", SAID[self.place]: self.text}

    def _log_record(self, time_ns: int) -> ExportLogsServiceRequest:
        message = ExportLogsServiceRequest()
        resource = message.resource_logs.add()
        record = resource.scope_logs.add().log_records.add(
            trace_id=bytes.fromhex(self.trace_id),
            span_id=b"\0" * 7 + b"a",
            event_name="gen_ai.user.message",
            time_unix_nano=time_ns,
        )
        LOGGED[self.place](resource, record, self.name, self.text)
        return message

    def _span(self, end_ns: int) -> ExportTraceServiceRequest:
        message = ExportTraceServiceRequest()
        resource = message.resource_spans.add()
        span = resource.scope_spans.add().spans.add(
            trace_id=bytes.fromhex(self.trace_id),
            span_id=b"\0" * 7 + b"a",
            name="invoke_agent support",
            start_time_unix_nano=end_ns - SECOND,
            end_time_unix_nano=end_ns,
            status=Status(code=Status.STATUS_CODE_OK),
        )
        span.attributes.append(_pair("gen_ai.operation.name", _text("invoke_agent")))
        (NAMED | UNNAMED)[self.place](resource, span, self.name, self.text)
        return message


def cells() -> Iterator[Cell]:
    """Yield every secret in every place where it can stand; those of one detector follow each other."""
    for planted in PLANTED:
        for place in PLACES:
            yield Cell(place, planted.detector.value, NOTE, planted.text, planted.secret)
    for place in WITH_NAMES:
        yield Cell(place, "secret-name", UNDER, UNDER_SECRET, UNDER_SECRET)
    for place in PLACES:
        yield Cell(place, f"rule {RULE}", NOTE, f"Dear {BY_RULE},", BY_RULE)
