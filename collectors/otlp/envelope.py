"""A second schema for the outside of an OTLP request, in which resource, scope and span are plain bytes.

It has one field more than OTLP: the records on our own topics say when each span was received. Whoever reads them as OTLP passes it over.

On the wire a message within a message is a length and bytes, so the two schemas read the same request. The parser refuses a whole request
for one string that is not UTF-8 (reliability D5); opened this way, it refuses only the span that has it.
"""

from typing import Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_PACKAGE: Final = "tracegrade.otlp"
_FIXED64: Final = "fixed64"
_TYPES: Final = {"": FieldDescriptorProto.TYPE_BYTES, _FIXED64: FieldDescriptorProto.TYPE_FIXED64}
_MESSAGES: Final[dict[str, tuple[tuple[str, int, bool, str], ...]]] = {
    # name: fields as (name, number, repeated, type: a message, fixed64, or empty for bytes)
    "ScopeSpans": (("scope", 1, False, ""), ("spans", 2, True, ""), ("received_at", 1001, True, _FIXED64)),
    "ResourceSpans": (("resource", 1, False, ""), ("scope_spans", 2, True, "ScopeSpans")),
    "Request": (("resource_spans", 1, True, "ResourceSpans"),),
}


def _request_class() -> Any:
    file = FileDescriptorProto(name="tracegrade/otlp.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, number, repeated, type_name in fields:
            field = message.field.add(name=name, number=number)
            field.label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            field.type = _TYPES.get(type_name, FieldDescriptorProto.TYPE_MESSAGE)
            if type_name not in _TYPES:
                field.type_name = f".{_PACKAGE}.{type_name}"
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Request"))


Request: Final[Any] = _request_class()
"""``ExportTraceServiceRequest`` and ``TracesData``, which are the same on the wire; and so are, by other names, those of log records."""
