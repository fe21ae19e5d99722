"""The load: traces of ten spans as an instrumented agent sends them, about 0.7 KB a span, in requests of ten traces."""

import json
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from pipeline.model.ids import digest
from pipeline.model.time import SECOND

SPANS: Final = 10
"""Of one trace: an agent, five model calls, four tool calls."""
TRACES_A_REQUEST: Final = 10
POLICY: Final = "You are a support agent. Refund only orders that exist, once, and never more than was paid. " * 6


def requests(traces: int, end_ns: int, number: int = 0) -> list[bytes]:
    """Return the bodies of OTLP requests that hold so many traces, which end at ``end_ns``; their ids are of ``number`` and those after it."""
    bodies = []
    for first in range(number, number + traces, TRACES_A_REQUEST):
        request = ExportTraceServiceRequest()
        resource_spans = request.resource_spans.add()
        resource_spans.resource.attributes.append(_attribute("service.name", "bench"))
        spans = resource_spans.scope_spans.add().spans
        for trace in range(first, min(first + TRACES_A_REQUEST, number + traces)):
            _trace(spans, trace, end_ns)
        bodies.append(request.SerializeToString())
    return bodies


def _trace(spans: Any, trace: int, end_ns: int) -> None:
    trace_id = bytes.fromhex(digest(16, "bench", str(trace)))
    start = end_ns - SPANS * SECOND
    order = f"A-{trace}"
    # Children end before their parents, and exporters send them so.
    for index in range(1, SPANS):
        build = _model if index % 2 else _tool
        build(spans.add(), trace_id, index, start + index * SECOND // 2, order)
    head = _span(spans.add(), trace_id, 0, "invoke_agent bench-agent", start, end_ns)
    head.attributes.extend([_attribute("gen_ai.operation.name", "invoke_agent"), _attribute("gen_ai.agent.name", "bench-agent")])


def _model(span: Span, trace_id: bytes, index: int, start: int, order: str) -> None:
    _span(span, trace_id, index, "chat bench-model", start, start + SECOND // 4)
    call = {
        "type": "tool_call",
        "id": f"call-{index + 1}",
        "name": "lookup_order",
        "arguments": {"order_id": order, "page": index},
    }
    said = {"type": "text", "content": f"Order {order} holds a lamp for 42.50 USD."} if index == SPANS - 1 else call
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"What is in order {order}?"}]}]
    span.attributes.extend(
        [
            _attribute("gen_ai.operation.name", "chat"),
            _attribute("gen_ai.provider.name", "openai"),
            _attribute("gen_ai.request.model", "bench-model"),
            _attribute("gen_ai.usage.input_tokens", 120),
            _attribute("gen_ai.usage.output_tokens", 30),
            _attribute("gen_ai.system_instructions", json.dumps([{"type": "text", "content": POLICY}])),
            _attribute("gen_ai.input.messages", json.dumps(asked)),
            _attribute("gen_ai.output.messages", json.dumps([{"role": "assistant", "parts": [said]}])),
        ]
    )


def _tool(span: Span, trace_id: bytes, index: int, start: int, order: str) -> None:
    _span(span, trace_id, index, "execute_tool lookup_order", start, start + SECOND // 8)
    span.attributes.extend(
        [
            _attribute("gen_ai.operation.name", "execute_tool"),
            _attribute("gen_ai.tool.name", "lookup_order"),
            _attribute("gen_ai.tool.call.id", f"call-{index}"),
            _attribute("gen_ai.tool.call.arguments", json.dumps({"order_id": order, "page": index - 1})),
            _attribute("gen_ai.tool.call.result", json.dumps({"order_id": order, "item": "lamp", "amount": 42.5})),
        ]
    )


def _span(span: Span, trace_id: bytes, index: int, name: str, start: int, end: int) -> Span:
    span.trace_id = trace_id
    span.span_id = (index + 1).to_bytes(8, "big")
    span.parent_span_id = b"" if index == 0 else (1).to_bytes(8, "big")
    span.name = name
    span.start_time_unix_nano = start
    span.end_time_unix_nano = end
    return span


def _attribute(key: str, value: str | int) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value) if isinstance(value, str) else AnyValue(int_value=value))
