"""The largest span there is travels through a real broker and a worker, and is stored as the embedded runtime stores it."""

import urllib.request
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest
from clickhouse_front import Front
from cluster import Cluster
from kafka_broker import Broker
from msgspec.structs import replace
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from serving import eventually
from unit.otlp.wire_forms import TRACE_ID, request, text, wire_span

from collectors.otlp import protobuf
from collectors.otlp.fitting import MAX_SPAN
from collectors.redaction.configured import redactor
from pipeline.model.span import TRUNCATED_FIELDS, Span
from sinks.clickhouse.connection import connect
from sinks.clickhouse.traces import load

pytestmark = pytest.mark.kafka

NUMBERS = AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=2**62)] * 200_000))


def test_a_span_and_a_resource_at_their_limits_are_stored_over_kafka_as_they_are_embedded(
    empty_broker: Broker, front: Front, tmp_path: Path
) -> None:
    cluster = Cluster(empty_broker, front, tmp_path, database="big")
    message = request(
        wire_span(
            attributes=[
                text("gen_ai.operation.name", "invoke_agent"),
                text("said", "xyzé" * 4_000_000),
                KeyValue(key="n", value=NUMBERS),
            ]
        ),
        wire_span(span_id=b"other..."),
        service="s" * 5_000_000,
    )
    body = message.SerializeToString()
    key = cluster.project, TRACE_ID.hex()
    with (
        cluster.worker("assemble") as worker,
        cluster.collector() as (_, http, _),
        closing(connect(cluster.settings.store, {})) as database,
    ):
        worker.says("working")  # so that its tables are there
        sent = urllib.request.Request(f"{http}/v1/traces", data=body, headers={"Content-Type": "application/x-protobuf"})  # noqa: S310
        with urllib.request.urlopen(sent) as answer:  # noqa: S310
            assert answer.read() == b""
        eventually(lambda: len(load(database, [key])[key].spans) == 2)
        stored = load(database, [key])[key].spans
    expected = protobuf.decode(body, cluster.project, 0, redactor(cluster.settings.redaction)).spans
    assert _said(stored) == _said(expected)
    assert all(TRUNCATED_FIELDS in span.resource for span in stored)
    (big,) = (span for span in stored if TRUNCATED_FIELDS in span.attributes)
    assert 0.8 * MAX_SPAN < len(str(big.attributes).encode()) < 1.2 * MAX_SPAN


def _said(spans: Iterable[Span]) -> dict[str, Span]:
    return {span.content_hash: replace(span, received_ns=0) for span in spans}
