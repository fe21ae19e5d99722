"""What nobody would expect in a span, from a sender's bytes to what a person reads of the run."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from serving import Up, an_up, get, scored, tracegrade
from unit.otlp.wire_forms import START, as_json, request, text, wire_span

QUESTION = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}])
ANSWER = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "It \u202eis\u202c he\x00re."}]}])
BIG = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "so much " * 600_000}]}])
PLACEHOLDER = "QQQQQ"


def _run(trace: int, agent: str, asked: str = QUESTION, answered: str = ANSWER) -> tuple[WireSpan, WireSpan]:
    at = {"trace_id": trace.to_bytes(16, "big")}
    return (
        wire_span(
            span_id=b"h" * 8, attributes=[text("gen_ai.operation.name", "invoke_agent"), text("gen_ai.agent.name", agent)], **at
        ),
        wire_span(
            span_id=b"m" * 8,
            parent_span_id=b"h" * 8,
            attributes=[
                text("gen_ai.operation.name", "chat"),
                text("gen_ai.request.model", "m"),
                text("gen_ai.input.messages", asked),
                text("gen_ai.output.messages", answered),
            ],
            events=[WireSpan.Event(name="e", time_unix_nano=START)],
            **at,
        ),
    )


def _post(up: Up, body: bytes, media: str) -> bytes:
    sent = urllib.request.Request(f"{up.http}/v1/traces", data=body, headers={"Content-Type": media})  # noqa: S310
    with urllib.request.urlopen(sent) as answer:  # noqa: S310
        told: bytes = answer.read()
    return told


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder: Path = tmp_path_factory.mktemp("odd")
    config = folder / "tracegrade.yaml"
    config.write_text(
        f"store: {{path: {folder / 'data'}}}\nreceiver: {{grpc_port: 0, http_port: 0}}\nassemble: {{quiet_period: 200ms}}\n"
    )
    with an_up(config, folder / "data") as running:
        bad = request(*_run(1, f"bytes-{PLACEHOLDER}")).SerializeToString().replace(PLACEHOLDER.encode(), b"\xff\xfe\xc3(\x80")
        assert _post(running, bad, "application/x-protobuf") == b""
        halves = as_json(request(*_run(2, f"halves-{PLACEHOLDER}"))).replace(PLACEHOLDER.encode(), rb"\ud83d")
        assert json.loads(_post(running, halves, "application/json")) == {}
        assert _post(running, request(*_run(3, "big", asked=BIG)).SerializeToString(), "application/x-protobuf") == b""
        assert _post(running, request(*_run(4, "plain")).SerializeToString(), "application/x-protobuf") == b""
        scored(running, 4)
        yield running


def test_every_run_is_there_and_can_be_read(up: Up) -> None:
    rows = get(f"{up.http}/api/scoreboard").json["runs"]
    assert {row["cohort"]["agent"] for row in rows} == {"bytes-\ufffd\ufffd\ufffd(\ufffd", "halves-\ufffd", "big", "plain"}
    for row in rows:
        detail = get(f"{up.http}/api/runs/{row['run_id']}").json
        assert detail["answer"] == "It \u202eis\u202c he\x00re."
        assert ("truncated" in detail["flags"]) is (row["cohort"]["agent"] == "big")
        if row["cohort"]["agent"] in ("halves-\ufffd", "plain"):
            continue
        told = tracegrade("run", row["run_id"], "-c", up.config)
        assert (told.code, told.err) == (0, "")
        assert not {"\x00", "\u202e"} & set(told.out)
        assert "he\\u0000re" in told.out


def test_the_page_shows_them_all(up: Up) -> None:
    page = get(f"{up.http}/?all")
    assert page.status == 200
    assert all(agent in page.text for agent in ("bytes-", "halves-", "big", "plain"))
