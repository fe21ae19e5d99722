"""A second schema for the outside of an OTLP request, in which resource, scope and span are plain bytes.

On the wire a message within a message is a length and bytes, so the two schemas read the same request. The parser refuses a whole request
for one string that is not UTF-8 (reliability D5); opened this way, it refuses only the span that has it.
"""

from typing import Any, Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_PACKAGE: Final = "tracegrade.otlp"
_MESSAGES: Final[dict[str, tuple[tuple[str, int, bool, str], ...]]] = {
    # name: fields as (name, number in OTLP, repeated, message type or empty for bytes)
    "ScopeSpans": (("scope", 1, False, ""), ("spans", 2, True, "")),
    "ResourceSpans": (("resource", 1, False, ""), ("scope_spans", 2, True, "ScopeSpans")),
    "Request": (("resource_spans", 1, True, "ResourceSpans"),),
}


def _request_class() -> Any:
    file = FileDescriptorProto(name="tracegrade/otlp.proto", package=_PACKAGE, syntax="proto3")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, number, repeated, message_type in fields:
            field = message.field.add(name=name, number=number)
            field.label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            field.type = FieldDescriptorProto.TYPE_MESSAGE if message_type else FieldDescriptorProto.TYPE_BYTES
            if message_type:
                field.type_name = f".{_PACKAGE}.{message_type}"
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Request"))


Request: Final[Any] = _request_class()
"""``ExportTraceServiceRequest`` and ``TracesData``, which are the same on the wire; and so are, by other names, those of log records."""
